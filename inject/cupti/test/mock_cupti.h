// SPDX-License-Identifier: Apache-2.0

// What tests and the demo tell the stand-in of libcupti, by dlsym from the
// libcupti.so.13 (or .12, which lacks the newer functions) that is loaded. It
// behaves as CUPTI's documents say: one subscriber; the last registration of
// buffer callbacks wins; records of the kinds that are enabled only; buffers asked
// for and handed over on a thread of its own; 21 for a record that it cannot read.
#ifndef LOCKSTEP_MOCK_CUPTI_H
#define LOCKSTEP_MOCK_CUPTI_H

#include <stddef.h>
#include <stdint.h>

// CUPTI's clock: REALTIME ns plus what mock_cupti_clock sets.
uint64_t mock_cupti_now(void);
void mock_cupti_clock(int64_t offset);

// A call that launches (cudaLaunchKernel) ended on a thread. Times by CUPTI's clock.
void mock_cupti_launch(uint32_t correlation, uint64_t start, uint64_t end, uint32_t thread);
// The device ran a kernel; the name is kept. Copies and sets are of bytes.
void mock_cupti_kernel(const char *mangled, uint64_t start, uint64_t end, uint32_t stream, uint32_t device,
                       uint32_t correlation);
void mock_cupti_copy(uint64_t bytes, uint64_t start, uint64_t end, uint32_t stream, uint32_t device,
                     uint32_t correlation);
void mock_cupti_set(uint64_t bytes, uint64_t start, uint64_t end, uint32_t stream, uint32_t device,
                    uint32_t correlation);
// A record as it is, whatever its kind (its first 32 bits); size is a multiple of 8.
void mock_cupti_record(const void *record, size_t size);
// Hands over every record made so far, and returns when that is done.
void mock_cupti_flush(void);

// The version that cuptiGetVersion tells, and with it the kernel records' layout,
// 18 (Kernel8) to 130500 (Kernel13); MOCK_CUPTI_VERSION in the environment sets it, too.
// The layout alone can be set to 4 to 13.
void mock_cupti_version(uint32_t version);
void mock_cupti_layout(unsigned kernel);
size_t mock_cupti_kernel_size(unsigned kernel); // bytes of the record, 0: of that in force; 0: no such layout

enum mock_cupti_fault {
    MOCK_REFUSE_SUBSCRIBE,  // the call returns the value
    MOCK_REFUSE_REGISTER,
    MOCK_REFUSE_ENABLE,     // of any kind
    MOCK_REFUSE_TIMESTAMP,
    MOCK_LOSE,              // that many records dropped, told by cuptiActivityGetNumDroppedRecords
    MOCK_ENDLESS,           // cuptiActivityGetNextRecord never ends while not 0
    MOCK_STRAY,             // it returns a pointer outside the buffer
    MOCK_HANG_FLUSH,        // cuptiActivityFlushAll does not return for that many ms, or until it is 0
    MOCK_REFUSE_KIND,       // cuptiActivityEnable of that kind returns 35
    MOCK_ODD,               // it returns that one record, so many bytes into the buffer
    MOCK_SLOW_CLOCK,        // cuptiGetTimestamp takes so many ms but the third time of every five of a thread
    MOCK_REFUSE_CLOCK,      // cuptiActivityRegisterTimestampCallback returns the value
    MOCK_FAULTS,
};
void mock_cupti_fault(enum mock_cupti_fault what, uint32_t value);
// As MOCK_CUPTI_REFUSE=value in the environment does for MOCK_REFUSE_REGISTER.

// What was asked of it.
unsigned mock_cupti_enabled(unsigned kind);     // 1: on
unsigned mock_cupti_api_enabled(unsigned kind); // cbids enabled of kind 4 or 5
unsigned mock_cupti_subscribers(void);
unsigned mock_cupti_calls(const char *function); // times it was called
uint32_t mock_cupti_period(void);                // of flushes, ms
uint32_t mock_cupti_thread_ids(void);            // how threads are numbered
unsigned mock_cupti_buffers_apart(void);         // threads have buffers of their own
unsigned mock_cupti_forced(void);                // flushes with the flag
unsigned mock_cupti_no_buffer(void);             // records lost since no buffer was given
unsigned mock_cupti_handed_over(void);           // buffers

#endif
