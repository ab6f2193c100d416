"""Saves with torchtitan's CheckpointManager, which keeps the newest two and deletes in a thread."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchtitan.components.checkpointer.dcp import CheckpointManager

import contents
import jobs_dcp


class States:
    """An optimizer, a schedule or a data loader, as far as a save sees it."""

    def __init__(self, make):
        self._make = make

    def state_dict(self):
        return self._make()

    def load_state_dict(self, state):
        raise NotImplementedError


class Train:
    step = 0

    def state_dict(self):
        return {"step": torch.tensor(self.step, dtype=torch.int32)}

    def load_state_dict(self, state):
        raise NotImplementedError


class Titan:
    world, epochs, args, root = 2, [1, 2, 3, 4], [], "out"

    def __init__(self, mode):
        self.mode = mode

    def run(self, rank, epochs, report):
        dist.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (self.world,))
        model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(8)))
        fully_shard(model, mesh=mesh)
        train = Train()
        moments = {}
        manager = CheckpointManager(
            CheckpointManager.Config(enable=True, folder="out", interval=1, keep_latest_k=2, async_mode=self.mode),
            model_parts=[model],
            optimizers=States(lambda: moments),
            lr_schedulers=States(lambda: {"last_epoch": train.step}),
            dataloader=States(lambda: {f"dp_rank_{rank}": bytes([train.step]) * 16}),
            states={"train_state": train}, sd_adapter=None,
        )
        for epoch in epochs:
            train.step = epoch
            with torch.no_grad():
                for name, p in model.named_parameters():
                    p.to_local().fill_(float(epoch))
                    moments[f"state.{name}.exp_avg"] = p.detach().clone()
            report.begin(epoch)
            manager.save(epoch)
            manager.maybe_wait_for_saving()
            report.done(epoch)
        manager.close()
        dist.destroy_process_group()

    def content(self, root, epoch):
        return contents.files(f"{root}/out", f"step-{epoch}", jobs_dcp.canonical)


jobs = {"sync": lambda: Titan("disabled"), "async": lambda: Titan("async")}
