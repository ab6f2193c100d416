// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func rankID(r int64) string { return "rank " + strconv.FormatInt(r, 10) }

// quote shows a name from a file: at most 80 characters, with what controls escaped.
func quote(s string) string { return fmt.Sprintf("%.80q", s) }

// dcpKind tells by the name of an item that is not of an optimizer what it is of. What is not recognised is
// taken for the model.
func dcpKind(fqn string) model.DomainKind {
	for part := range strings.FieldsFuncSeq(strings.ToLower(fqn), func(r rune) bool { return r == '.' || r == '/' }) {
		switch strings.TrimRight(part, "_0123456789") {
		case "lr_scheduler", "scheduler", "lr_schedulers", "opt_param_scheduler":
			return model.DomainScheduler
		case "rng", "rng_state", "rng_states":
			return model.DomainRNG
		case "dataloader", "data_loader", "train_dataloader":
			return model.DomainDataLoader
		}
	}
	return model.DomainModel
}
