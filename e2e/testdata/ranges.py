# A program that marks its ranges for NVIDIA's tools, and knows of no other.
import threading
import time

import nvtx


@nvtx.annotate("compute", domain="trainer")
def compute():
    time.sleep(0.005)


for _ in range(3):
    with nvtx.annotate("step"):
        compute()

nvtx.push_range("pushed")
time.sleep(0.005)
nvtx.pop_range()

started = nvtx.start_range("started", domain="trainer")
nvtx.push_range("meanwhile")
thread = threading.Thread(target=nvtx.end_range, args=(started,))
thread.start()
thread.join()
nvtx.pop_range()

domain = nvtx.get_domain("trainer")
domain.push_range(domain.get_event_attributes(message="registered", category="io", payload=1))
domain.pop_range()
nvtx.mark("a mark is no scope")
