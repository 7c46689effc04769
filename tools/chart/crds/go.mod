// The modules whose schemas and definitions of kinds the checks of the chart read. No
// code of them is built here, so `go mod tidy` would drop them.
module github.com/samya-db/samya/tools/chart/crds

go 1.26.6

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
	k8s.io/kubernetes v1.37.2
)
