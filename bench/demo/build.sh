# SPDX-License-Identifier: Apache-2.0

# Builds what the demo needs into bin/. To be sourced in the repository's root.
make -s inject bin/lockstep
