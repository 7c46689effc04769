# The paper's five regions, one site in each.
project = "my-project"
release = {
  url    = "https://example.com/samya/1.0.0/samya-linux-amd64"
  sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
}
regions = {
  us-west1             = { network = 0, app_managers = 3, app_managers_max = 6 }
  asia-east2           = { network = 1 }
  europe-west2         = { network = 2 }
  australia-southeast1 = { network = 3 }
  southamerica-east1   = { network = 4 }
}
client_cidrs = ["10.0.0.0/16"]
