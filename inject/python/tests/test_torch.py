# SPDX-License-Identifier: Apache-2.0

"""Hooks on PyTorch: what they record, and that the program does not notice."""

import unittest
from collections import Counter

from . import ring
from .helper import Case, full_tier, needs_torch, size

STEPS = ("forward", "backward", "optimizer", "data_loading")


def without_collections(r):
    return [name for name in r.names() if name != "garbage_collection"]


@needs_torch
class Training(Case):
    def test_one_process(self):
        self.run_program("""
            import torch
            from torch.utils.data import DataLoader
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(8, 1)))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in DataLoader(torch.ones(12, 8), batch_size=4):
                model(batch).sum().backward()
                optimizer.step()
        """)  # fmt: skip
        r = self.ring()
        each = ["data_loading", "forward", "backward", "optimizer"]
        self.assertEqual(without_collections(r), each * 3 + ["data_loading"])
        steps = [s["step"] for s in r.scopes if s["name"] != "garbage_collection"]
        self.assertEqual({s["depth"] for s in r.scopes if s["name"] != "garbage_collection"}, {0})
        self.assertEqual(steps, [0] * 4 + [1] * 4 + [2] * 4 + [3])
        self.assertEqual(r.steps, [0, 1, 2, 3])
        self.assertEqual(r.drops[17], 0)

    def test_worker_processes(self):
        self.run_program("""
            import torch
            from torch.utils.data import DataLoader
            for batch in DataLoader(torch.ones(8, 2), batch_size=4, num_workers=1): pass
        """)
        self.assertEqual(without_collections(self.ring()), ["data_loading"] * 3)

    @full_tier
    def test_steps_of_the_program(self):
        self.run_program("""
            import torch, lockstep_scope
            model = torch.nn.Linear(2, 2)
            first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
            lockstep_scope.step(100)
            first.step()
            lockstep_scope.step(101)
            first.step()
        """)
        self.assertEqual(self.ring().steps, [100, 101])

    @full_tier
    def test_only_the_first_optimizer_ends_a_step(self):
        self.run_program("""
            import torch
            model = torch.nn.Linear(2, 2)
            first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
            for _ in range(3):
                first.step(); second.step()
        """)
        r = self.ring()
        self.assertEqual(r.steps, [0, 1, 2, 3])
        self.assertEqual(Counter(r.names())["optimizer"], 6)

    def test_exceptions_leave_nothing_open(self):
        self.run_program("""
            import torch
            class Fails(torch.nn.Module):
                def forward(self, x):
                    raise x
            for error in (ValueError("a"), KeyboardInterrupt("b")):
                try:
                    Fails()(error)
                except BaseException as got:
                    assert got is error
            class Raises(torch.optim.SGD):
                fail = True
                def step(self):
                    if self.fail: raise OverflowError
                    return super().step()
            torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)  # its step is hooked as well
            optimizer = Raises(torch.nn.Linear(1, 1).parameters(), lr=0.1)
            try: optimizer.step()
            except OverflowError: optimizer.fail = False
            optimizer.step()
            try: torch.autograd.backward(torch.ones(1))
            except RuntimeError: pass
            torch.nn.Linear(1, 1)(torch.ones(1, 1)).sum().backward()
        """)
        got = Counter(self.ring().names())
        self.assertEqual([got[name] for name in ("forward", "optimizer", "backward")], [2, 1, 2])

    @full_tier
    def test_submodules(self):
        self.run_program("""
            import torch
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.encoder = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
                    self.head = torch.nn.Linear(2, 2)
                def forward(self, x): return self.head(self.encoder(x))
            Model()(torch.ones(1, 2))
        """, under=("--hooks", "modules", "--modules", "encoder,encoder.1"))  # fmt: skip
        r = self.ring()
        self.assertEqual(r.names(), ["forward", "forward encoder", "forward encoder.1"])
        self.assertEqual([s["depth"] for s in r.scopes], [0, 1, 2])

    def test_checkpoints(self):
        self.run_program("""
            import torch, torch.distributed.checkpoint as dcp
            model = torch.nn.Linear(2, 2)
            torch.save(model.state_dict(), "model.pt")
            assert torch.load("model.pt")["bias"].shape == (2,)
            dcp.save(model.state_dict(), checkpoint_id="dcp")
            dcp.load(model.state_dict(), checkpoint_id="dcp")
        """, under=("--hooks", "checkpoint"))  # fmt: skip
        r = self.ring()
        main = [s for s in r.scopes if s["depth"] == 0 and s["thread"] == r.scopes[0]["thread"]]
        self.assertEqual([s["name"] for s in main], ["checkpoint_save", "checkpoint_load"] * 2)
        self.assertEqual({s["phase"] for s in r.scopes}, {"checkpoint"})

    def test_compilation(self):
        out, _ = self.run_program("""
            import torch, lockstep_scope
            print(lockstep_scope.status()["hooks"]["compile"])
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
            graphs = []
            def backend(graph, inputs):
                graphs.append([n.target for n in graph.graph.nodes])
                return graph.forward
            compiled = torch.compile(model, backend=backend, fullgraph=True)
            compiled(torch.ones(1, 2))
            compiled(torch.ones(1, 2))
            torch._dynamo.reset()
            compiled = torch.compile(model, backend=backend, fullgraph=True)
            compiled(torch.ones(1, 2))
            assert len(graphs) == 2, graphs
            print([node for node in graphs[0] if "lockstep" in str(node)])
        """)  # fmt: skip
        self.assertEqual(out, "waits for torch._dynamo\n[]\n")
        r = self.ring()
        got = Counter(r.names())
        self.assertEqual((got["forward"], got["compile"]), (3, 2))
        self.assertEqual({s["phase"] for s in r.scopes if s["name"] == "compile"}, {"compile"})

    def test_profiler_has_cupti_to_itself(self):
        out, _ = self.run_program("""
            import torch
            from lockstep_scope.library import LIBRARY
            import lockstep_scope
            lockstep_scope.uninstall()
            LIBRARY.cupti_pause = lambda: print("pause")
            LIBRARY.cupti_resume = lambda: print("resume")
            lockstep_scope.install("profiler")
            with torch.profiler.profile() as p: print("profiling")
            assert p.events() is not None
            with torch.autograd.profiler.profile(): print("again")
            lockstep_scope.uninstall()
            with torch.profiler.profile(): print("alone")
        """)
        self.assertEqual(out.split(), ["pause", "profiling", "resume", "pause", "again", "resume", "alone"])

    @full_tier
    def test_torchscript(self):
        self.run_program("""
            import torch
            def grad(x: torch.Tensor):
                return torch.autograd.grad([(x * x).sum()], [x])
            def backward(x: torch.Tensor):
                torch.autograd.backward([(x * x).sum()])
                return x
            def save(x: torch.Tensor):
                torch.save(x, "scripted.pt")
                return x
            x = torch.ones(2, requires_grad=True)
            for function in (grad, backward, save):
                torch.jit.script(function)(x)
            import lockstep_scope
            lockstep_scope.uninstall()
            assert torch.jit._builtins._find_builtin(torch.save) == "aten::save"
        """)

    @full_tier
    def test_failed_calls_are_not_kept(self):
        self.run_program("""
            import gc, torch, weakref
            class Fails(torch.optim.SGD):
                def step(self, closure=None): raise OverflowError
            class Interrupted(torch.nn.Module):
                def forward(self, x): raise KeyboardInterrupt
            torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)
            def optimize():
                data = torch.ones(10)
                optimizer = Fails(torch.nn.Linear(1, 1).parameters(), lr=0.1)
                try: optimizer.step(lambda: data)
                except OverflowError: return weakref.ref(data), weakref.ref(optimizer)
            def call():
                model = Interrupted()
                try: model(1)
                except KeyboardInterrupt: return weakref.ref(model)
            alive = [*optimize(), call()]
            gc.collect()
            assert [each() for each in alive] == [None] * 3, alive
        """)

    def test_everything_is_put_back(self):
        self.run_program("""
            import gc, pdb, sys, warnings, torch, torch.distributed as dist, torch.distributed.checkpoint, torch._dynamo
            import lockstep_scope
            from lockstep_scope import hooks
            from torch.nn.modules import module
            from torch.optim import optimizer
            owners = [torch, pdb.Pdb, torch.serialization, torch.autograd, torch.distributed, dist.distributed_c10d,
                      torch.utils.data.dataloader._BaseDataLoaderIter, torch.autograd.profiler.profile,
                      torch.nn.parallel.DistributedDataParallel, torch.distributed.checkpoint,
                      torch._dynamo.callback.CompilationCallbackHandler]
            tables = [module._global_forward_hooks, module._global_forward_pre_hooks, module._global_forward_hooks_always_called,
                      optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks]
            def state():
                torch.jit._builtins._get_builtin_table()
                return [dict(vars(o)) for o in owners], dict(torch.jit._builtins._builtin_table), [dict(t) for t in tables], list(gc.callbacks), list(sys.meta_path), list(warnings.filters)
            lockstep_scope.uninstall()
            before = state()
            lockstep_scope.install()
            lockstep_scope.install()
            assert all(s == "on" for s in lockstep_scope.status()["hooks"].values()), lockstep_scope.status()
            assert state() != before
            # Whoever has wrapped us since keeps what he has, and it does nothing more.
            ours = torch.save
            lockstep_scope.uninstall()
            assert state() == before
            ours({}, "x.pt")
        """)
        self.assertEqual(self.ring().scopes, [])


DISTRIBUTED = """
    import hashlib, os, torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    dist.init_process_group("gloo")
    torch.manual_seed(3 + dist.get_rank())
    data = torch.randn(6, 5, 32)
    torch.manual_seed(3)
    layers = [torch.nn.Linear(32, 400), torch.nn.Tanh(), *(torch.nn.Linear(400, 400) for _ in range(3))]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.5, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for i, batch in enumerate(data):
        if i == 4:
            with model.no_sync(): model(batch).square().sum().backward()
        model(batch).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    print(hashlib.sha256(bytes(weights.untyped_storage())).hexdigest())
    dist.destroy_process_group()
"""


@needs_torch
class Distributed(Case):
    def test_weights_are_the_same_bit_by_bit(self):
        jobs = ((3, "{}"), (3, "dict(gradient_as_bucket_view=True)"),
                (2, "dict(gradient_as_bucket_view=True, static_graph=True)"))  # fmt: skip
        for ranks, options in jobs[:size(1, len(jobs))]:
            code = f"    options = {options}\n" + DISTRIBUTED
            with self.subTest(ranks=ranks, options=options):
                for path in self.rings.iterdir():
                    path.unlink()
                plain = self.run_ranks(code, ranks, under=None)
                self.assertEqual(ring.read(self.rings), [])
                hooked = self.run_ranks(code, ranks)
                self.assertEqual(hooked, plain)
                self.assertEqual(len(set(plain)), 1)
                rings = ring.read(self.rings)
                buckets = [[o["seq"] for o in r.ops if o["func"] == "AllReduce"] for r in rings]
                if ranks == 3 and "view" in options:  # not hooked: it would not be the same
                    self.assertEqual(buckets, [[]] * 3)
                else:
                    self.assertEqual(sorted(buckets[0]), list(range(len(buckets[0]))))
                    self.assertGreaterEqual(len(buckets[0]), 2 * 5)

    @full_tier
    def test_hooks_of_the_program(self):
        self.run_ranks("""
            import torch, torch.distributed as dist
            from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
            from torch.nn.parallel import DistributedDataParallel
            dist.init_process_group("gloo")
            calls = []
            def own(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
                calls.append(state)
                return default_hooks.allreduce_hook(None, bucket)
            early, late = (DistributedDataParallel(torch.nn.Linear(2, 2)) for _ in range(2))
            early.register_comm_hook("early", own)
            early(torch.ones(1, 2)).sum().backward()
            loss = late(torch.ones(1, 2)).sum()
            late.register_comm_hook("late", own)
            loss.backward()
            assert calls == ["early", "late"], calls
            try:
                late.register_comm_hook("twice", own)
            except RuntimeError:
                pass
            else:
                raise SystemExit("registered twice")
            dist.destroy_process_group()
        """, 2)  # fmt: skip
        for r in ring.read(self.rings):
            self.assertEqual(len(r.ops), 2)  # of the hook's own all-reduce, which Python asks for

    def test_exit_with_operations_pending(self):
        self.run_ranks("""
            import os, time, torch, torch.distributed as dist
            dist.init_process_group("gloo")
            dist.all_reduce(torch.ones(1000))
            works = [dist.all_reduce(torch.ones(100000), async_op=True) for _ in range(20)]
            if os.environ["RANK"] == "1": time.sleep(1)
        """, 2)  # fmt: skip

    def test_ends_of_operations_that_nobody_waits_for(self):
        self.run_ranks("""
            import time, torch, torch.distributed as dist
            dist.init_process_group("gloo")
            works = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(40)]
            while not all(w.is_completed() for w in works): time.sleep(0.01)
            dist.barrier()
            dist.destroy_process_group()
        """, 2)  # fmt: skip
        for r in ring.read(self.rings):
            ends = [o["end"] for o in r.ops if o["func"] == "AllReduce"]
            self.assertEqual((len(ends), ends.count(0)), (40, 0))

    @full_tier
    def test_a_model_pickles_and_copies(self):
        self.run_program("""
            import copy, io, torch, torch.distributed as dist
            dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            def check():
                file = io.BytesIO()
                torch.save(model, file)
                assert b"lockstep" not in file.getvalue()
                file.seek(0)
                for other in (torch.load(file, weights_only=False), copy.deepcopy(model)):
                    other(torch.ones(2, 4)).sum().backward()
            check()
            model(torch.ones(2, 4)).sum().backward()
            check()
        """)
        self.assertEqual(len(self.ring().ops), 3)  # the model's, and of two copies made before its first forward

    @full_tier
    def test_weights_after_join_and_built_in_hooks(self):
        code = """
            import hashlib, torch, torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            def train(use, **options):
                torch.manual_seed(0)
                model = DistributedDataParallel(torch.nn.Linear(64, 64), **options)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                torch.manual_seed(rank + 5)
                def one():
                    optimizer.zero_grad()
                    model(torch.randn(2, 64)).square().sum().backward()
                    optimizer.step()
                one()
                use(model, one)
                one()
                weights = torch.cat([p.detach().flatten() for p in model.parameters()])
                print(hashlib.sha256(bytes(weights.untyped_storage())).hexdigest())
            def join(static):
                def use(model, one):
                    with model.join(divide_by_initial_world_size=static):
                        for _ in range(rank + 1): one()
                return use
            train(join(False))
            train(join(True))
            train(join(False), gradient_as_bucket_view=True)
            for kind in (dist.BuiltinCommHookType.ALLREDUCE, dist.BuiltinCommHookType.FP16_COMPRESS):
                train(lambda model, one: model._register_builtin_comm_hook(kind))
            dist.barrier()
            dist.destroy_process_group()
        """
        plain = self.run_ranks(code, 3, under=None)
        self.assertEqual(self.run_ranks(code, 3), plain)
        by_those_left, by_all = plain[0].split()[:2]
        self.assertNotEqual(by_those_left, by_all)

    def test_collectives(self):
        self.run_ranks("""
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            rank, size = dist.get_rank(), dist.get_world_size()
            x = torch.ones(10)
            dist.all_reduce(x)
            assert x[0] == size
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            dist.broadcast(x, src=1)
            dist.all_gather([torch.empty(10) for _ in range(size)], x)
            dist.all_gather_into_tensor(torch.empty(10 * size), x)
            dist.reduce(tensor=x, dst=1)
            dist.scatter(x, [torch.ones(10)] * size if rank == 0 else None, src=0)
            dist.all_gather_object([None] * size, {"rank": rank})
            dist.barrier()
            pair = dist.new_group([0, 1])
            if rank < 2:
                dist.all_reduce(torch.ones(3, dtype=torch.int64), group=pair)
            try:
                dist.all_reduce("no tensor")
            except Exception as error:
                assert "ensor" in str(error), error
            else:
                raise SystemExit("a text was reduced")
            dist.destroy_process_group()
        """, 3)  # fmt: skip
        rings = ring.read(self.rings)
        self.assertEqual([r.rank for r in rings], [0, 1, 2])
        for r in rings:
            world = [o for o in r.ops if o["comm"]["size"] == 3]
            got = Counter((o["func"], o["bytes"]) for o in world if o["func"] != "AllGather")
            self.assertEqual(got, {("AllReduce", 40): 2, ("Broadcast", 40): 1, ("Reduce", 40): 1, ("Scatter", 40): 1,
                                   ("Barrier", 0): 1})  # fmt: skip
            # One each; of all_gather_object two more, of other sizes.
            self.assertEqual([o["bytes"] for o in world if o["func"] == "AllGather"].count(40), 2)
            self.assertEqual({o["comm"]["rank"] for o in world}, {r.rank})
            self.assertEqual(Counter(r.names())["process_group"], 2)
            self.assertEqual({s["phase"] for s in r.scopes if s["name"] == "process_group"}, {"init"})
        hashes = [{o["comm"]["hash"] for o in r.ops} for r in rings]
        self.assertEqual(hashes[0], hashes[1])
        self.assertEqual((len(hashes[0]), len(hashes[2])), (2, 1))
        self.assertLess(hashes[2], hashes[0])
        pair = [o for o in rings[0].ops if o["comm"]["size"] == 2]
        self.assertEqual([(o["bytes"], o["dtype"]) for o in pair], [(24, "ncclInt64")])

    def test_a_rank_that_waits_is_in_the_collective(self):
        self.run_ranks("""
            import time, torch, torch.distributed as dist
            dist.init_process_group("gloo")
            dist.barrier()
            if dist.get_rank() == 1: time.sleep(0.3)
            dist.all_reduce(torch.ones(4), async_op=True).wait()
            dist.destroy_process_group()
        """, 2)  # fmt: skip
        took = [next(o["end"] - o["begin"] for o in r.ops if o["func"] == "AllReduce") for r in ring.read(self.rings)]
        self.assertGreater(took[0], 150_000_000)
        self.assertLess(took[1], took[0])


if __name__ == "__main__":
    unittest.main()
