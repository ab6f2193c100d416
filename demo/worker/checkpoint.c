// SPDX-License-Identifier: Apache-2.0

// Checkpoints: each rank writes its part of the weights to a file of its own, under
// a name that is there only once the disk has it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

static bool write_all(int fd, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(fd, (const char *)from + done, bytes - done);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

// The rank's part of each layer's weights, one after the other.
static bool write_shard(int fd)
{
    for (int l = 0; l < LAYERS; l++) {
        size_t count, n = (size_t)opt.ranks, rank = (size_t)opt.rank;
        const float *w = model_weights(l, &count);
        size_t from = count * rank / n, to = count * (rank + 1) / n;
        if (!write_all(fd, w + from, (to - from) * sizeof *w)) {
            return false;
        }
    }
    return fsync(fd) == 0;
}

void checkpoint_write(long step)
{
    char tmp[4096], path[4096];
    snprintf(tmp, sizeof tmp, "%s/.shard%d", opt.meet, opt.rank);
    snprintf(path, sizeof path, "%s/shard%d", opt.meet, opt.rank);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write_shard(fd);
    int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (!written || rename(tmp, path) != 0) {
        fail("write %s after step %ld: %s", path, step, strerror(written ? errno : why));
    }
}
