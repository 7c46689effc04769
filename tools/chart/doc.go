// Package chart holds the checks of the Helm chart deploy/helm/samya and of the Compose
// file deploy/compose: it renders them, and judges what comes out. It refuses to deploy
// anything: a chart is installed by helm.
package chart
