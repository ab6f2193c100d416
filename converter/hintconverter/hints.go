// SPDX-License-Identifier: Apache-2.0

package hintconverter

import (
	"fmt"
	"slices"
)

// sections are the parts of a configuration that hold components.
var sections = []string{"receivers", "processors", "exporters", "connectors", "extensions"}

const (
	core    = "go.opentelemetry.io/collector/"
	contrib = "github.com/open-telemetry/opentelemetry-collector-contrib/"
	own     = "github.com/lockstep-otel/lockstep"
)

// hint is what to do about components of one module.
type hint struct {
	section string
	// names are the component's type and its deprecated types.
	names []string
	// module is the Go module that holds the component; empty where no module does any more.
	module string
	// full is true for what otelcol-lockstep holds, so that only other collectors lack it.
	full bool
	// instead is a replacement, as a sentence; empty for the default.
	instead string
}

// text returns a sentence that names a reason and a next step.
func (h hint) text() string {
	switch {
	case h.full && h.section == "receivers":
		return "otelcol-lockstep holds this component, this collector does not. Run otelcol-lockstep."
	case h.full:
		return "otelcol-lockstep holds this component, this collector does not. Run otelcol-lockstep, or send the data to one."
	case h.module == "":
		return "OpenTelemetry has removed this component. " + h.instead
	case h.instead != "":
		return "this collector does not hold this component. " + h.instead
	default:
		return fmt.Sprintf("this collector does not hold this component. To compile one that does, add \"gomod: %s\" with a version to a manifest; docs/custom-distribution.md says how.", h.module)
	}
}

// find returns the hint for a component type of one section.
func find(section, name string) (hint, bool) {
	i := slices.IndexFunc(hints, func(h hint) bool {
		return h.section == section && slices.Contains(h.names, name)
	})
	if i < 0 {
		return hint{}, false
	}
	return hints[i], true
}

func gone(section, instead string, names ...string) hint {
	return hint{section: section, names: names, instead: instead}
}

func absent(section, module string, names ...string) hint {
	return hint{section: section, names: names, module: contrib + module}
}

func full(section, module string, names ...string) hint {
	return hint{section: section, names: names, module: module, full: true}
}

// hints covers what public configurations use. A component that neither otelcol-lockstep
// nor this table has gets upstream's error alone.
var hints = slices.Concat(removed, elsewhere, onlyFull)

// removed has what upstream has deleted, with its successor.
var removed = []hint{
	gone("exporters", "Jaeger receives OTLP: use otlp_grpc with Jaeger's port 4317.", "jaeger", "jaeger_thrift"),
	gone("exporters", "Loki receives OTLP: use otlp_http with the endpoint http://HOST:3100/otlp.", "loki"),
	gone("exporters", "OpenCensus has ended: use otlp_grpc.", "opencensus"),
	gone("receivers", "OpenCensus has ended: use otlp.", "opencensus"),
	gone("extensions", "Set the environment variable GOMEMLIMIT, and the processor memory_limiter.", "memory_ballast"),
	gone("processors", "Use the connector routing in a collector of your own, or several pipelines with the processor filter.", "routing"),
	gone("processors", "Use the connector span_metrics.", "spanmetrics"),
	gone("processors", "Use the connector service_graph.", "servicegraph"),
}

// elsewhere has what exists and otelcol-lockstep does not hold.
var elsewhere = []hint{
	{
		section: "receivers", names: []string{"httpcheck", "http_check"}, module: contrib + "receiver/httpcheckreceiver",
		instead: "Use the receiver prometheus with a blackbox exporter.",
	},
	{
		section: "exporters", names: []string{"opensearch"}, module: contrib + "exporter/opensearchexporter",
		instead: "Use otlp_http with OpenSearch Data Prepper, which receives OTLP.",
	},
	{
		section: "receivers", names: []string{"dcgm", "nvml", "nvidia_gpu"}, module: "github.com/GoogleCloudPlatform/opentelemetry-operations-collector",
		instead: "Use the receiver prometheus with dcgm-exporter, port 9400.",
	},
	{
		section: "exporters", names: []string{"otelarrow", "otel_arrow"}, module: contrib + "exporter/otelarrowexporter",
		instead: "Use otlp_grpc with compression: zstd.",
	},
	absent("connectors", "connector/routingconnector", "routing"),
	absent("connectors", "connector/failoverconnector", "failover"),
	absent("connectors", "connector/exceptionsconnector", "exceptions"),
	absent("receivers", "receiver/k8sobjectsreceiver", "k8sobjects", "k8s_objects"),
	absent("receivers", "receiver/k8sclusterreceiver", "k8s_cluster"),
	absent("receivers", "receiver/k8seventsreceiver", "k8s_events"),
	absent("receivers", "receiver/otelarrowreceiver", "otelarrow", "otel_arrow"),
	absent("receivers", "receiver/statsdreceiver", "statsd"),
	absent("receivers", "receiver/syslogreceiver", "syslog"),
	absent("receivers", "receiver/tcplogreceiver", "tcplog", "tcp_log"),
	absent("receivers", "receiver/udplogreceiver", "udplog", "udp_log"),
	absent("receivers", "receiver/fluentforwardreceiver", "fluentforward", "fluent_forward"),
	absent("receivers", "receiver/postgresqlreceiver", "postgresql"),
	absent("receivers", "receiver/nginxreceiver", "nginx"),
	absent("processors", "processor/groupbyattrsprocessor", "groupbyattrs", "group_by_attrs"),
	absent("processors", "processor/groupbytraceprocessor", "groupbytrace", "group_by_trace"),
	absent("processors", "processor/cumulativetodeltaprocessor", "cumulativetodelta", "cumulative_to_delta"),
	absent("processors", "processor/deltatocumulativeprocessor", "deltatocumulative", "delta_to_cumulative"),
	absent("processors", "processor/metricstransformprocessor", "metricstransform", "metrics_transform"),
	absent("processors", "processor/spanprocessor", "span"),
	absent("processors", "processor/intervalprocessor", "interval"),
	absent("exporters", "exporter/elasticsearchexporter", "elasticsearch"),
	absent("exporters", "exporter/datadogexporter", "datadog"),
	absent("exporters", "exporter/zipkinexporter", "zipkin"),
	absent("exporters", "exporter/awss3exporter", "awss3", "aws_s3"),
	absent("exporters", "exporter/googlecloudexporter", "googlecloud", "google_cloud"),
	absent("exporters", "exporter/azuremonitorexporter", "azuremonitor", "azure_monitor"),
	absent("exporters", "exporter/signalfxexporter", "signalfx"),
	absent("exporters", "exporter/splunkhecexporter", "splunk_hec"),
	absent("extensions", "extension/opampextension", "opamp"),
	absent("extensions", "extension/oidcauthextension", "oidc"),
	absent("extensions", "extension/sigv4authextension", "sigv4auth"),
	absent("extensions", "extension/jaegerremotesampling", "jaegerremotesampling", "jaeger_remote_sampling"),
}

// onlyFull has what otelcol-lockstep holds and the agent does not.
var onlyFull = []hint{
	full("receivers", contrib+"receiver/dockerstatsreceiver", "docker_stats"),
	full("receivers", contrib+"receiver/jaegerreceiver", "jaeger"),
	full("receivers", contrib+"receiver/journaldreceiver", "journald"),
	full("receivers", contrib+"receiver/kafkareceiver", "kafka"),
	full("receivers", contrib+"receiver/kubeletstatsreceiver", "kubelet_stats", "kubeletstats"),
	full("receivers", contrib+"receiver/otlpjsonfilereceiver", "otlp_json_file", "otlpjsonfile"),
	full("receivers", contrib+"receiver/receivercreator", "receiver_creator"),
	full("receivers", contrib+"receiver/redisreceiver", "redis"),
	full("receivers", contrib+"receiver/zipkinreceiver", "zipkin"),
	full("receivers", own, "job_kafka"),
	full("processors", own, "straggler"),
	full("processors", own, "clock_skew"),
	full("processors", contrib+"processor/attributesprocessor", "attributes"),
	full("processors", contrib+"processor/filterprocessor", "filter"),
	full("processors", contrib+"processor/k8sattributesprocessor", "k8s_attributes", "k8sattributes"),
	full("processors", contrib+"processor/probabilisticsamplerprocessor", "probabilistic_sampler"),
	full("processors", contrib+"processor/redactionprocessor", "redaction"),
	full("processors", contrib+"processor/resourcedetectionprocessor", "resource_detection", "resourcedetection"),
	full("processors", contrib+"processor/tailsamplingprocessor", "tail_sampling"),
	full("processors", contrib+"processor/transformprocessor", "transform"),
	full("exporters", contrib+"exporter/clickhouseexporter", "clickhouse"),
	full("exporters", contrib+"exporter/fileexporter", "file"),
	full("exporters", contrib+"exporter/kafkaexporter", "kafka"),
	full("exporters", contrib+"exporter/loadbalancingexporter", "load_balancing", "loadbalancing"),
	full("exporters", contrib+"exporter/prometheusexporter", "prometheus"),
	full("exporters", contrib+"exporter/prometheusremotewriteexporter", "prometheus_remote_write", "prometheusremotewrite"),
	full("connectors", own, "findings"),
	full("connectors", own, "clocks"),
	full("connectors", own, "straggler"),
	full("connectors", own, "desync"),
	full("connectors", own, "epoch"),
	full("connectors", core+"connector/forwardconnector", "forward"),
	full("connectors", contrib+"connector/countconnector", "count"),
	full("connectors", contrib+"connector/servicegraphconnector", "service_graph", "servicegraph"),
	full("connectors", contrib+"connector/spanmetricsconnector", "span_metrics", "spanmetrics"),
	full("extensions", own, "timeline"),
	full("extensions", own, "jobs"),
	full("extensions", own, "sequence"),
	full("extensions", contrib+"extension/basicauthextension", "basicauth", "basic_auth"),
	full("extensions", contrib+"extension/headerssetterextension", "headers_setter"),
	full("extensions", contrib+"extension/oauth2clientauthextension", "oauth2client", "oauth2_client"),
	full("extensions", contrib+"extension/observer/k8sobserver", "k8s_observer"),
}
