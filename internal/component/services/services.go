// SPDX-License-Identifier: Apache-2.0

// Package services finds what an extension offers to other components.
package services

import (
	"fmt"

	"go.opentelemetry.io/collector/component"
)

// Find returns the service S of an extension. Type is the type of extension that offers it.
func Find[S any](host component.Host, id component.ID, typ string) (service S, err error) {
	ext, ok := host.GetExtensions()[id]
	if !ok {
		return service, fmt.Errorf("find extension %s: got none; want it in service::extensions", id)
	}
	service, ok = ext.(S)
	if !ok {
		return service, fmt.Errorf("find extension %s: got an extension of another type; want %s", id, typ)
	}
	return service, nil
}
