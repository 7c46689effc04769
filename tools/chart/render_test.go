package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// Paths from this directory.
const (
	// Root is the root of the project.
	Root = "../.."
	// Dir is the directory of the chart.
	Dir = Root + "/deploy/helm/samya"
)

// The release that the checks render.
const (
	release   = "samya"
	namespace = "quota"
	// kubeVersion is the version of Kubernetes whose schemas and server are used.
	kubeVersion = "v1.37.2"
)

// object is an object of Kubernetes.
type object map[string]any

// kind returns the kind of o.
func (o object) kind() string { return text(o, "kind") }

// name returns the name of o.
func (o object) name() string { return text(o, "metadata", "name") }

// at returns the value below keys and indices; nil if there is none.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			switch m := v.(type) {
			case object:
				v = m[step]
			case map[string]any:
				v = m[step]
			default:
				return nil
			}
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// text returns the text below a path; empty if there is none.
func text(v any, path ...any) string {
	s, _ := at(v, path...).(string)
	return s
}

// list returns the list below a path.
func list(v any, path ...any) []any {
	l, _ := at(v, path...).([]any)
	return l
}

// texts returns the texts of a list below a path.
func texts(v any, path ...any) []string {
	var all []string
	for _, s := range list(v, path...) {
		all = append(all, fmt.Sprint(s))
	}
	return all
}

// valuesFiles returns the files of values that every check runs over, by name.
func valuesFiles() (map[string]map[string]any, error) {
	paths, err := filepath.Glob(Dir + "/ci/*.yaml")
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]any)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		values := make(map[string]any)
		if err := yaml.Unmarshal(b, &values); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".yaml")] = values
	}
	// The defaults: a chart out of a checkout needs the tag alone.
	all["defaults"] = map[string]any{"image": map[string]any{"tag": "v1.2.3"}}
	return all, nil
}

// load reads the chart.
func load() (*chartv2.Chart, error) {
	return loader.LoadDir(Dir)
}

// render returns the objects of the chart with values, in the order of its files, as
// `helm template` does. provider answers lookups; nil: nothing is there.
func render(values map[string]any, provider engine.ClientProvider) ([]object, error) {
	files, err := renderFiles(values, provider)
	if err != nil {
		return nil, err
	}
	var all []object
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		for decoder := yaml.NewDecoder(bytes.NewReader([]byte(files[file]))); ; {
			o := make(map[string]any)
			err := decoder.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", file, err, files[file])
			}
			if len(o) > 0 {
				all = append(all, object(o))
			}
		}
	}
	return all, nil
}

// renderFiles returns the texts that come out of the chart's files.
func renderFiles(values map[string]any, provider engine.ClientProvider) (map[string]string, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	kube, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kube
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	filled, err := util.ToRenderValues(c, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	if provider != nil {
		return engine.RenderWithClientProvider(c, filled, provider)
	}
	return engine.Render(c, filled)
}

// pods returns the templates of all pods of objects, by kind and name.
func pods(objects []object) map[string]map[string]any {
	all := make(map[string]map[string]any)
	for _, o := range objects {
		switch o.kind() {
		case "Pod":
			all["Pod/"+o.name()] = o
		case "CronJob":
			if t, ok := at(o, "spec", "jobTemplate", "spec", "template").(map[string]any); ok {
				all[o.kind()+"/"+o.name()] = t
			}
		case "Deployment", "StatefulSet", "Job":
			if t, ok := at(o, "spec", "template").(map[string]any); ok {
				all[o.kind()+"/"+o.name()] = t
			}
		}
	}
	return all
}

// containers returns the containers of a pod, those that run first before the others.
func containers(pod map[string]any) []map[string]any {
	var all []map[string]any
	for _, which := range []string{"initContainers", "containers"} {
		for _, c := range list(pod, "spec", which) {
			all = append(all, c.(map[string]any))
		}
	}
	return all
}
