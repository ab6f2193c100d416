"""Writes the databases beside it with TensorStore 0.1.86: python make.py"""

import os
import random
import shutil

import tensorstore as ts

os.chdir(os.path.dirname(os.path.abspath(__file__)))
for name in ("small", "deep"):
    shutil.rmtree(name, ignore_errors=True)
rng = random.Random(1)

# One node, with a value of 2,000 bytes outside and one of 5 within.
small = ts.KvStore.open(f"file://{os.getcwd()}/small/|ocdbt:").result()
small.write(b"a", b"short").result()
small.write(b"b", rng.randbytes(2000)).result()

# Many nodes: 60 keys in nodes of at most 400 bytes.
deep = ts.KvStore.open(
    {"driver": "ocdbt", "base": f"file://{os.getcwd()}/deep/", "config": {"max_decoded_node_bytes": 400, "max_inline_value_bytes": 0, "compression": None}}
).result()
txn = ts.Transaction()
for i in range(60):
    deep.with_transaction(txn)[b"key%03d" % i] = rng.randbytes(20)
txn.commit_async().result()
