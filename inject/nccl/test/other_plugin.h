// SPDX-License-Identifier: Apache-2.0

// What the plugin that is chained in tests tells of itself.
#ifndef OTHER_PLUGIN_H
#define OTHER_PLUGIN_H

struct other_seen {
    _Atomic unsigned version;
    _Atomic int inits, finals, bad; // bad: handles that are not its own
    _Atomic int starts[16], stops[16];
    _Atomic(void *) parent[16]; // of the last start
};

#endif
