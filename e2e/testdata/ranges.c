// A program that marks its ranges for NVIDIA's tools, and knows of no other.
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

int main(void)
{
    nvtxEventAttributes_t e = {NVTX_VERSION, NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    nvtxNameCategoryA(7, "io");
    e.category = 7;
    e.messageType = NVTX_MESSAGE_TYPE_ASCII;
    e.message.ascii = "of a category";
    int level = nvtxRangePushA("outer");
    for (int i = 0; i < 10; i++) {
        level += nvtxRangePushW(L"wide \u20ac");
        usleep(1000);
        nvtxRangePop();
    }
    level += nvtxRangePushEx(&e);
    level += nvtxRangePop();
    level += nvtxRangePop();
    return level == 12 ? 0 : 1; // outer is of level 0, what is inside it of level 1
}
