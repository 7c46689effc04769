# Two regions whose sites survive the loss of a machine: two nodes each, over an etcd of the
# region's own, and three over an etcd that runs already. A third region has a site on disk.
project = "my-project"
release = {
  url    = "https://example.com/samya/1.0.0/samya-linux-amd64"
  sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
}
etcd = {
  url    = "https://example.com/etcd/etcd-linux-amd64.tar.gz"
  sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
}
regions = {
  europe-west2 = { network = 0, sites = 2, nodes = 2 }
  us-west1     = { network = 1, nodes = 3, etcd_endpoints = ["etcd-1.example.com:2379", "etcd-2.example.com:2379"] }
  us-east1     = { network = 2, app_managers = 1 }
}
