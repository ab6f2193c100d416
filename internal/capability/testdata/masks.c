//go:build ignore

// Prints for each version of the interface the masks of the three levels, of mask.c
// itself.
#include "mask.c"

int chain_mask(void) { return 0; }
struct context *context_at(uint32_t index) { (void)index; return NULL; }

int main(void)
{
    static struct lockstep_control control;
    static struct lockstep_ring r;
    r.control = &control;
    for (unsigned abi = 1; abi <= ABI_NEWEST; abi++) {
        printf("%u", abi);
        for (uint64_t level = LOCKSTEP_LEVEL_SUMMARY; level <= LOCKSTEP_LEVEL_ALL; level++) {
            atomic_store(&control.level, level);
            printf(" %d", mask_wanted(&r, abi));
        }
        printf("\n");
    }
    return 0;
}
