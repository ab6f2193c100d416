module github.com/lockstep-otel/lockstep/e2e

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/lockstep-otel/lockstep v0.0.0-00010101000000-000000000000
	go.yaml.in/yaml/v3 v3.0.6
)

replace github.com/lockstep-otel/lockstep => ../
