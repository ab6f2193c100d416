// SPDX-License-Identifier: Apache-2.0

package capability

const head = `<!-- Written by go generate ./internal/capability; change the table there. -->

# What each witness can decide

For every class of finding of the data model, and every set of witnesses: can today's
engines tell it? Each cell is one of

* **decides**: who is at fault is named, in the right class, and with the right cause where
  the line asks for one; nobody else is.
* **bounds**: who is named is at fault, but in another class, without the cause, or not in
  every job. The cell says as what; *nobody* means that some jobs end without a finding.
* **abstains**: the evidence is missing. Nothing is told, and nobody is accused in its stead.
* **abstains (not judged yet)**: no engine judges this class, whatever is recorded.
* **abstains (told elsewhere)**: this class is told from what no row has, such as packets between nodes, or not on the jobs of this table.

The cells were found out, not wished. A simulated job of 8 ranks on 4 nodes runs 40 steps of
some 45 ms with a known fault, noise of 3 % in kernels and 10 % on hosts, and clocks of nodes
that are up to 3 ms apart. Of that, the row's witness records its part: the live plugin's rows
are ring records that ` + "`internal/rankevents`" + ` reads as it does real ones, and Kineto's
row are operations as its reader hands them on. The real engine judges, every 8 steps and
at the end. A computing fault makes kernels 35 % longer (matrix products 60 % for a kernel that
was chosen badly, with tiles half as large); a rank with more to do has 35 % more, and a stage half
as many layers again; a late host is kept 14 ms in every step; a slow link adds 6 ms to
each collective; jitter is 40 ms, for each rank in another one of sixteen steps; a job that changes does
in the middle. What is smaller than the engine's gates
([diagnosis.md](diagnosis.md), 5) is told by no row.

    go test ./internal/capability                        # 1 job for each cell
    LOCKSTEP_TESTS=full go test ./internal/capability    # the 10 that the table speaks of

The jobs of the table are data-parallel and sharded ones that read a value in each step, and for
` + "`stage_imbalance`" + ` a pipeline; [other programs](#the-program-decides-too) change what is told. That NCCL and CUPTI
record what the rows take them to record is not shown here; [gpu.md](gpu.md) has what was seen on a
GPU. Larger jobs, smaller faults and other
methods are in the [scoreboard](../bench/scoreboard/README.md).

## The rows

The first five are the live plugin's, and cumulative: each has what those before it have. The last two
stand alone.

| row | what is recorded | how |
| --- | --- | --- |
| NCCL host events | that an operation was enqueued, not when it was over | the plugin with ` + "`LOCKSTEP_EVENT_MASK=7`" + ` |
| + kernel channels | when its kernel ran, by the GPU's clock | NCCL 2.27 or later |
| + proxy steps | what sending proxies waited for; ranks that send nothing over the network have none | the default level |
| + scopes | steps and phases of the host | ` + "`lockstep_scope`" + `, NVTX ranges, or calls of ` + "`inject/lockstep.h`" + ` |
| + CUPTI | all other kernels, with their launches | ` + "`CUDA_INJECTION64_PATH`" + `, opt-in |
| Kineto | kernels, collectives and the profiler's own scopes of 10 steps | PyTorch's profiler |
| Flight Recorder | the last collectives of each process group | [dumps](hangs.md) of PyTorch, for hangs |

Rows before scopes have no marks of steps: they are numbered by the sequence of collectives on
the world communicator, once 32 have been seen.

## Which witness to add

* *Is somebody late at all?* Kernel channels. Without completions nothing is told of anybody.
* *Is it the network?* Proxy steps.
* *What kept the host?* Scopes: the cause of a late host is that of the scope it was in.
* *Which kernel, in sharded training or behind a host that waits for its device?* CUPTI, or for some
  steps Kineto. A slow device in many short segments is told by nothing else.
* *More work, or slower? Another kernel?* CUPTI, or for some steps Kineto: they have the grids and names of
  kernels. Where grids do not grow with the work, operations with their tokens
  (` + "`lockstep.work.tokens`" + `) tell more than either.
* *Is it a whole node, do hosts pause in turn, is the whole job slower than before?* Kernel channels, over some
  forty steps; ten of Kineto do not hold a change of the whole job.
* *Has one stage of a pipeline more to do?* Kernel channels, and the attribute ` + "`lockstep.parallel.pp.rank`" + ` on each rank's
  resource, which no witness here records.

## The table
`

const shapesHead = `
## The program decides, too

Who is named for a third more computing, or a late host, in programs of other shapes. A host that
is ahead of its device hides what it does for as long: in programs that never wait it is late by
70 ms here. ` + "`+ proxy steps`" + ` is as ` + "`+ kernel channels`" + `. Test: ` + "`" + testShapes + "`" + `; that nobody is named in
healthy jobs of each shape, under each row: ` + "`TestHealthyJobs`" + `.
`

const apart = `
In the pipeline a rank has one peer, its replica. Its segments end in messages, so that without a record of
kernels nobody can say what it costs; and of two that differ, ten steps are too few to name one. Of sharded programs without a record of kernels, who is named depends on how
steps are cut: count on nobody there.

**Mark the steps** of a program that repeats one collective and no other. Unmarked, it has no steps, since
one collective may be one of many in a step, and nobody is named: ` + "`TestOneRepeatedCollective`" + `.

## Host and computing without CUPTI

They are told apart by the launch lead time. NCCL tells when a collective was enqueued, and its
kernel's stamps when it began. One that was enqueued and could not begin waited for work that was
launched before: from then on the device was at work (` + "`compute`" + `, *work before all_reduce*). Until it
was enqueued, nothing was known to have been launched: the host was late (` + "`host`" + `). So the device is
not taken for the host as long as the host is ahead of it. It is where the host waits for its device
before it launches a collective, and for what follows the step's last one; with a record of kernels
neither is. [diagnosis.md](diagnosis.md), 3, has the rules. Tests: ` + "`TestShapes`" + `, and in ` + "`internal/straggler`" + `
` + "`TestUnrecordedWorkIsToldByLaunchLeadTime`, `TestALateLaunchIsTheHosts`, `TestLiveStragglersAreFoundWithinTenSteps`" + `.
`

const masksHead = `
## What is asked of NCCL

The default event masks, by version of the profiler interface and level. ` + "`TestMasks`" + ` compiles
` + "`inject/nccl/mask.c`" + ` and compares. RCCL has the same interface since its synchronisation with 2.26.6.

`

const masksTail = `
` + "`summary`" + ` is the row *+ kernel channels*, and counts proxy operations; ` + "`collectives`" + ` is *+ proxy steps*. Versions
1 and 2 know no kernel channels: there, an operation that no proxy has a part in is as in *NCCL host
events*. Version 3 knows no times of theirs: an operation begins when it was enqueued, and a slow device
shows as a long collective.

**What it costs: reported by others, not measured by us.** On 8 A100s with mask 71 (groups,
collectives, messages, kernel channels), ` + "`all_reduce_perf`" + ` between 128 KB and 4 MB lost 0.1 to 1.1 % with
NCCL 2.29.7 and 4.3 to 13.3 % with 2.31.2 ([NVIDIA/nccl#2355](https://github.com/NVIDIA/nccl/issues/2355)). The
cause given there: in 2.31.2, asking for kernel channels alone also switches on the writing of phase
stamps and a fence for the whole system ([NVIDIA/nccl#2357](https://github.com/NVIDIA/nccl/pull/2357) is to
separate them; open when this was written). Training lost 0.26 % with mask 127 on 16 A100s
([NVIDIA/nccl#1809](https://github.com/NVIDIA/nccl/issues/1809)). Small messages pay most.

**Should the default leave kernel channels out on 2.31?** It stays as it is:

* Without them, and without proxies, as inside a node, the row is *NCCL host events*: it decides nothing. A
  profiler that costs little and tells nothing is a bad default.
* NCCL tells a plugin the version of the interface, not its own. Version 7 is 2.31.2 and every later
  release, those that will have the fix included.
* The loss reported is of a benchmark that does nothing but communicate, in messages of one size range.

Who runs 2.31 with small messages, as in tensor-parallel inference, can measure with
` + "`LOCKSTEP_EVENT_MASK=0x101e`" + ` beside the default: collectives, messages and proxies without kernel channels.
Then operations over the network are told to their last proxy, and those within a node as in *NCCL host
events*. Phases of kernels, which cost the same fence by design, are asked for by level ` + "`all`" + ` only.
`
