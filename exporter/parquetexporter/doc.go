// SPDX-License-Identifier: Apache-2.0

//go:generate go tool mdatagen metadata.yaml

// Package parquetexporter keeps operations as Parquet files in a local folder of limited size, and uploads them to an
// S3-compatible store where one is configured.
package parquetexporter
