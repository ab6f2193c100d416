// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configretry"

	"github.com/lockstep-otel/lockstep/internal/component/web"
)

// Config configures the flight_recorder receiver.
type Config struct {
	// Include names files, directories and globs of both; empty: where PyTorch writes its
	// dumps by default, unless pull has endpoints.
	Include []string `mapstructure:"include"`
	// Exclude holds globs of file names, or of paths where they hold a separator.
	Exclude []string `mapstructure:"exclude"`
	// RankPattern finds the rank in a file's name, in its first group; empty: its last number is it.
	RankPattern string `mapstructure:"rank_pattern"`
	// PollInterval is how often files are looked for. Network file systems tell of no changes.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// Settle is how long a file that is not whole must not change until it is read as it is.
	Settle time.Duration `mapstructure:"settle"`
	// MaxAge is how old a file may be that is seen first; 0 is any age.
	MaxAge time.Duration `mapstructure:"max_age"`

	// JobID and JobName name the job; without an id, LOCKSTEP_JOB_ID of the environment or the folder's name does.
	JobID   string `mapstructure:"job_id"`
	JobName string `mapstructure:"job_name"`
	// WorldSize is the job's number of ranks; 0 is unknown.
	WorldSize int64 `mapstructure:"world_size"`
	// Local: the dumps in files are of processes of this host.
	Local bool `mapstructure:"local"`
	// HostID names this host as its clocks are named; empty: what the system says.
	HostID string `mapstructure:"host_id"`
	// Ranks are those whose dumps come here: "0-7".
	Ranks []string `mapstructure:"ranks"`
	// AllRanks: the dumps of all ranks come here.
	AllRanks bool `mapstructure:"all_ranks"`

	// Wait is how long after a dump the next one of its incident is waited for, MaxWait how
	// long after the first in all.
	Wait    time.Duration `mapstructure:"wait"`
	MaxWait time.Duration `mapstructure:"max_wait"`
	// Window is how far apart dumps of one incident are written at most.
	Window time.Duration `mapstructure:"window"`
	// StallAfter is how old an open operation is of which an event tells.
	StallAfter time.Duration `mapstructure:"stall_after"`
	// Stacks reads call stacks, too.
	Stacks bool `mapstructure:"stacks"`

	// Keep holds copies of dumps.
	Keep KeepConfig `mapstructure:"keep"`
	// Pull asks the debug servers of processes.
	Pull PullConfig `mapstructure:"pull"`
	// Trigger takes requests for dumps.
	Trigger TriggerConfig `mapstructure:"trigger"`

	// MaxFiles is the most files that are watched, MaxFileBytes the largest that is read.
	MaxFiles     int   `mapstructure:"max_files"`
	MaxFileBytes int64 `mapstructure:"max_file_bytes"`
	// MaxOpenEvents is the most operations of a rank of which events tell that they are open.
	MaxOpenEvents int `mapstructure:"max_open_events"`
	// MaxSeries is the most series of each metric.
	MaxSeries int `mapstructure:"max_series"`
	// BatchOps is the most operations handed on at once, BatchStates the most states.
	BatchOps    int `mapstructure:"batch_ops"`
	BatchStates int `mapstructure:"batch_states"`
	// RetryOnFailure says how long is offered again what the next component refuses for now.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

// KeepConfig bounds the copies of dumps; without a directory none are kept.
type KeepConfig struct {
	Directory string `mapstructure:"directory"`
	MaxBytes  int64  `mapstructure:"max_bytes"`
	MaxFiles  int    `mapstructure:"max_files"`

	_ struct{}
}

// PullConfig names debug servers.
type PullConfig struct {
	Endpoints []EndpointConfig `mapstructure:"endpoints"`
	// Interval is how often they are asked; 0: on request only.
	Interval time.Duration `mapstructure:"interval"`
	// Timeout is how long an answer may take.
	Timeout time.Duration `mapstructure:"timeout"`

	_ struct{}
}

// EndpointConfig is one debug server, or those of several ranks.
type EndpointConfig struct {
	// URL may hold {rank}.
	URL   string   `mapstructure:"url"`
	Ranks []string `mapstructure:"ranks"`

	_ struct{}
}

// TriggerConfig says who may ask for dumps, and how they are had.
type TriggerConfig struct {
	// ServerConfig takes requests; without an endpoint there is no server.
	confighttp.ServerConfig `mapstructure:",squash"`
	// Pipes are values of TORCH_NCCL_DEBUG_INFO_PIPE_FILE.
	Pipes []string `mapstructure:"pipes"`
	// MinInterval is how long after a request the next is taken.
	MinInterval time.Duration `mapstructure:"min_interval"`

	_ struct{}
}

const (
	defaultPollInterval = time.Second
	// defaultSettle: PyTorch writes a dump in one go, so that a pause means the end, or a
	// process that was killed meanwhile.
	defaultSettle = time.Second
	// defaultMaxAge is the longest that a collector's restart should lose nothing of.
	defaultMaxAge = 10 * time.Minute
	// defaultWait: ranks see within a second that another dumps; stacks take longer.
	defaultWait = 10 * time.Second
	// defaultMaxWait has room for a dump that is tried with stacks, given up after 15 s, and
	// written without.
	defaultMaxWait    = time.Minute
	defaultWindow     = 2 * time.Minute
	defaultStallAfter = 2 * time.Second

	defaultKeepBytes = 1 << 30
	defaultKeepFiles = 4096

	// defaultPullTimeout is PyTorch's own for stacks, which need Python's lock.
	defaultPullTimeout = 15 * time.Second
	defaultMinInterval = 10 * time.Second

	// defaultMaxFiles has room for the largest jobs.
	defaultMaxFiles = 131072
	// defaultMaxFileBytes: 100,000 entries with stacks are some 16 MB, as JSON 50 MB.
	defaultMaxFileBytes  = 256 << 20
	defaultMaxOpenEvents = 64
	defaultMaxSeries     = 16384
	defaultBatchOps      = 4096
	// defaultBatchStates keeps a batch of states under the 4 MiB that gRPC takes.
	defaultBatchStates = 128
	// maxJobs bounds the folders that are told apart.
	maxJobs = 1024
)

func newDefaultConfig() *Config {
	retry := configretry.NewDefaultBackOffConfig()
	// Who refuses is mostly the memory limiter beside us, which checks each second.
	retry.InitialInterval = 100 * time.Millisecond
	retry.MaxInterval = 5 * time.Second
	return &Config{
		PollInterval: defaultPollInterval, Settle: defaultSettle, MaxAge: defaultMaxAge,
		Local: true,
		Wait:  defaultWait, MaxWait: defaultMaxWait, Window: defaultWindow, StallAfter: defaultStallAfter, Stacks: true,
		Keep:     KeepConfig{MaxBytes: defaultKeepBytes, MaxFiles: defaultKeepFiles},
		Pull:     PullConfig{Timeout: defaultPullTimeout},
		Trigger:  TriggerConfig{ServerConfig: web.DefaultConfig(""), MinInterval: defaultMinInterval},
		MaxFiles: defaultMaxFiles, MaxFileBytes: defaultMaxFileBytes, MaxOpenEvents: defaultMaxOpenEvents,
		MaxSeries: defaultMaxSeries, BatchOps: defaultBatchOps, BatchStates: defaultBatchStates,
		RetryOnFailure: retry,
	}
}
