// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
	"github.com/lockstep-otel/lockstep/exporter/partitionedkafkaexporter"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
)

// learn writes what nodes measure of their clocks while the job runs to the topic of clocks, as agents do, and waits
// until the gateway has solved for the clocks and read its models.
func (w *world) learn(ctx context.Context, r *recording.Recording) (err error) {
	f := partitionedkafkaexporter.NewFactory()
	cfg := f.CreateDefaultConfig()
	settings := map[string]any{
		"brokers": []string{w.broker.Address}, "logs::topic": w.topics[clocks], "logs::partition_by": "clock", "sending_queue::enabled": false,
	}
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		return fmt.Errorf("configure the exporter of clocks: %w", err)
	}
	e, err := f.CreateLogs(ctx, exportertest.NewNopSettings(f.Type()), cfg)
	if err != nil {
		return fmt.Errorf("make the exporter of clocks: %w", err)
	}
	if err := e.Start(ctx, componenttest.NewNopHost()); err != nil {
		return fmt.Errorf("start the exporter of clocks: %w", err)
	}
	defer func() { err = errors.Join(err, e.Shutdown(ctx)) }()
	sent, err := edges(r, func(ld plog.Logs) error { return e.ConsumeLogs(ctx, ld) })
	if err != nil {
		return err
	}
	nodes := int64(r.Ranks / recording.PerNode)
	return errors.Join(
		w.gateway.await(ctx, "connector_clocks_edges", sent),
		w.gateway.await(ctx, "extension_timeline_clocks", 2*nodes),
	)
}

// learnAlone sends a gateway without Kafka what nodes measure of their clocks while the job runs, over OTLP, and waits
// until it has solved for them.
func learnAlone(ctx context.Context, c *collector, r *recording.Recording) (err error) {
	conn, err := grpc.NewClient(c.env["LOCKSTEP_OTLP_GRPC_ENDPOINT"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the gateway: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	client := plogotlp.NewGRPCClient(conn)
	sent, err := edges(r, func(ld plog.Logs) error {
		_, err := client.Export(ctx, plogotlp.NewExportRequestFromLogs(ld))
		return err //nolint:wrapcheck // edges says what was done
	})
	if err != nil {
		return err
	}
	return errors.Join(
		c.await(ctx, "connector_clocks_edges", sent),
		c.await(ctx, "extension_timeline_clocks", 2*int64(r.Ranks/recording.PerNode)),
	)
}

// edges sends what all nodes measure, a request for each window of the probe mesh, and returns how many edges it sent.
func edges(r *recording.Recording, send func(plog.Logs) error) (sent int64, err error) {
	for at := r.From; at < r.Until+int64(recording.ProbeWindow); at += int64(recording.ProbeWindow) {
		ld := plog.NewLogs()
		records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for node := range r.Ranks / recording.PerNode {
			for _, edge := range recording.Edges(node, at) {
				clockmap.EdgeToLog(&edge, records.AppendEmpty())
				sent++
			}
		}
		if err := send(ld); err != nil {
			return sent, fmt.Errorf("send edges of clocks: %w", err)
		}
	}
	return sent, nil
}
