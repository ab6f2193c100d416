// SPDX-License-Identifier: Apache-2.0

package semconv

// OpenTelemetry's attributes that tell what a span is, old and new names. They
// decide which causal relations hold of it.
const (
	K8SNodeName = "k8s.node.name"

	RPCSystem        = "rpc.system"
	RPCSystemName    = "rpc.system.name"
	RPCStatus        = "rpc.response.status_code"
	RPCStatusGRPC    = "rpc.grpc.status_code"
	RPCStatusConnect = "rpc.connect_rpc.error_code"
	HTTPMethod       = "http.request.method"
	HTTPMethodOld    = "http.method"
	HTTPStatus       = "http.response.status_code"
	HTTPStatusOld    = "http.status_code"
	HTTPContentType  = "http.response.header.content-type"
	URLScheme        = "url.scheme"
	HTTPSchemeOld    = "http.scheme"
	NetworkProtocol  = "network.protocol.name"
	GraphQLOperation = "graphql.operation.type"
	ErrorType        = "error.type"

	MessagingSystem        = "messaging.system"
	MessagingOperation     = "messaging.operation.type"
	MessagingOperationOld  = "messaging.operation"
	MessagingOperationName = "messaging.operation.name"

	// EventMessage and EventMessageRPC are events of one message of a call; RPCMessageID
	// and RPCMessageIDOld count them from 1.
	EventMessage    = "message"
	EventMessageRPC = "rpc.message"
	EventException  = "exception"
	RPCMessageID    = "rpc.message.id"
	RPCMessageIDOld = "message.id"
)
