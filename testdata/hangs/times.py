"""Give the dumps of each job the times at which they were written, which no checkout keeps.

seen.json has them: {"written": {rank: Unix ns}}.
"""

import json
import os
import pathlib

for seen in sorted(pathlib.Path(__file__).parent.glob("*/seen.json")):
    for rank, ns in json.loads(seen.read_text())["written"].items():
        os.utime(seen.parent / "dumps" / f"rank_{rank}", ns=(ns, ns))
