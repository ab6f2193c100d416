// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import "go.opentelemetry.io/collector/confmap"

// Unmarshal gives a store its defaults.
func (c *S3Config) Unmarshal(from *confmap.Conf) error {
	*c = newDefaultS3()
	return from.Unmarshal(c)
}
