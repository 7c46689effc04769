module github.com/samya-db/samya/tools/docsite

go 1.26.0

require (
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/net v0.61.0
)
