// SPDX-License-Identifier: Apache-2.0

package part

import (
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/part/cupti"
)

func cuptiPart() Part {
	return Part{Name: "cupti", Title: "What the device ran, by CUPTI", Limit: 150 * time.Second, Run: cupti.Run}
}
