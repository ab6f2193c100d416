# SPDX-License-Identifier: Apache-2.0

# What the Makefiles of the C code share; OUT, SOURCES and HEADERS come from them.
# SAN=asan or SAN=tsan builds with those sanitizers, into folders of their own. Only
# gcc and make are needed.
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

ifeq ($(origin CC),default)
CC := gcc
endif

SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# Everything shared is atomic, so that no fence, of which ThreadSanitizer knows
# nothing, can hide a race from it.
SAN_tsan := -fsanitize=thread -Wno-tsan

CFLAGS ?= $(if $(SAN),-O1 -g1,-O2 -g)
override CFLAGS += -std=gnu11 -Wall -Wextra -Werror $(SAN_$(SAN))

# What every compiled file depends on. FLAGS changes where the compiler, the flags or
# the list of sources do.
FLAGS := $(OUT)/flags
COMMON := $(HEADERS) $(FLAGS) Makefile $(lastword $(MAKEFILE_LIST))

.PHONY: FORCE
$(FLAGS): FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS) $(SOURCES)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(SOURCES)' >$@
