package site

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// partitionMetrics asks the partitions for their figures whenever metrics are
// collected. Labels are outcomes, percentiles and numbers of partitions, which
// partitions.MaxCount bounds, never entities.
type partitionMetrics struct{ site *Site }

var (
	descPartitions   = prometheus.NewDesc("samya_site_partitions", "Partitions that entities are kept in.", nil, nil)
	descOperations   = prometheus.NewDesc("samya_site_partition_operations_total", "Requests that a partition had a part in.", []string{"partition"}, nil)
	descBelonging    = prometheus.NewDesc("samya_site_partition_entities", "Entities that belong to a partition.", []string{"partition"}, nil)
	descQueued       = prometheus.NewDesc("samya_site_partition_queued", "Requests that wait at a partition.", []string{"partition"}, nil)
	descBy           = prometheus.NewDesc("samya_site_partition_requests_total", "Requests by how many partitions served them: one, several, or none (those that the site stepped alone).", []string{"by"}, nil)
	descImbalance    = prometheus.NewDesc("samya_site_partition_imbalance", "The load of the partition with most over the mean.", nil, nil)
	descSplit        = prometheus.NewDesc("samya_site_split_entities", "Entities whose tokens are split over the partitions.", nil, nil)
	descRepartitions = prometheus.NewDesc("samya_site_repartitions_total",
		"Maps of entities to partitions by outcome: computed, and of those applied and skipped; failed counts cuts and switches that failed.",
		[]string{"outcome"}, nil)
	descMoved    = prometheus.NewDesc("samya_site_repartition_moved_total", "Entities assigned to another partition.", nil, nil)
	descPauses   = prometheus.NewDesc("samya_site_repartition_pauses_total", "How often requests stood still for a new map.", nil, nil)
	descPause    = prometheus.NewDesc("samya_site_repartition_pause_seconds", "For how long they stood still, since the start; percentile 100 is the longest.", []string{"percentile"}, nil)
	descCut      = prometheus.NewDesc("samya_site_repartition_cut_share", "The share of what was used together that the last map has apart.", nil, nil)
	descTracking = prometheus.NewDesc("samya_site_repartition_tracking_share", "The share of requests that is tracked.", nil, nil)
)

// Describe implements prometheus.Collector.
func (p *partitionMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descPartitions, descOperations, descBelonging, descQueued, descBy, descImbalance, descSplit,
		descRepartitions, descMoved, descPauses, descPause, descCut, descTracking,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *partitionMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	st := p.site.stats()
	gauge(descPartitions, float64(len(st.Partitions)))
	for i, of := range st.Partitions {
		n := strconv.Itoa(i)
		counter(descOperations, float64(of.Served), n)
		gauge(descBelonging, float64(of.Entities), n)
		gauge(descQueued, float64(of.Queued), n)
	}
	counter(descBy, float64(st.Served-min(st.Cross, st.Served)), "one")
	counter(descBy, float64(st.Cross), "several")
	counter(descBy, float64(st.Passed), "none")
	gauge(descImbalance, st.Imbalance)
	gauge(descSplit, float64(len(st.Split)))
	counter(descRepartitions, float64(st.Control.Computed), "computed")
	counter(descRepartitions, float64(st.Control.Applied), "applied")
	counter(descRepartitions, float64(st.Control.Skipped), "skipped")
	counter(descRepartitions, float64(st.Control.Failed), "failed")
	counter(descMoved, float64(st.Control.Moved))
	counter(descPauses, float64(st.Pause.Count))
	gauge(descPause, st.Pause.P50.Seconds(), "50")
	gauge(descPause, st.Pause.P99.Seconds(), "99")
	gauge(descPause, st.Pause.Max.Seconds(), "100")
	gauge(descCut, st.Control.LastCut)
	gauge(descTracking, st.Control.Sample)
}
