// SPDX-License-Identifier: Apache-2.0

// A CUDA driver as far as the plugin asks one: this thread's device is 3, and its
// uuid counts from 1.
#include <stdint.h>

int cuCtxGetDevice(int *device);
int cuDeviceGetUuid_v2(uint8_t uuid[16], int device);

int cuCtxGetDevice(int *device)
{
    *device = 3;
    return 0;
}

int cuDeviceGetUuid_v2(uint8_t uuid[16], int device)
{
    for (int i = 0; i < 16; i++) {
        uuid[i] = (uint8_t)(i + 1);
    }
    return device == 3 ? 0 : 101;
}
