// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// A program that libcuda would start with our library: begins CUPTI, then uses its
// scopes as if nothing were. Prints the status and how many records came, and ends
// with the status that it was told to.
//
//   host LIBRARY EXIT-STATUS
#include "lockstep.h"
#include "ring.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *function(void *lib, const char *name)
{
    void *f = dlsym(lib, name);
    if (f == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(99);
    }
    return f;
}

int main(int argc, char **argv)
{
    void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (lib == NULL) {
        fprintf(stderr, "usage: host LIBRARY EXIT-STATUS: %s\n", argc == 3 ? dlerror() : "");
        return 99;
    }
    int (*injection)(void) = (int (*)(void))function(lib, "InitializeInjection");
    const char *(*status)(void) = (const char *(*)(void))function(lib, "lockstep_status");
    uint64_t (*begin)(const char *, int) = (uint64_t (*)(const char *, int))function(lib, "lockstep_scope_begin");
    void (*end)(uint64_t) = (void (*)(uint64_t))function(lib, "lockstep_scope_end");
    int (*pause_it)(void) = (int (*)(void))function(lib, "lockstep_cupti_pause");
    int (*resume_it)(void) = (int (*)(void))function(lib, "lockstep_cupti_resume");

    printf("injection %d\n", injection());
    printf("again %d\n", injection());
    printf("status %s\n", status());
    for (int i = 0; i < 100; i++) {
        end(begin("forward", LOCKSTEP_PHASE_TRAIN));
    }
    usleep(1200000); // past a tick
    printf("pause %d\n", pause_it());
    printf("paused %s\n", status());
    printf("resume %d\n", resume_it());
    printf("resumed %s\n", status());
    return atoi(argv[2]);
}
