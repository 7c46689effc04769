# What the variables refuse, and what does not change by accident.

variables {
  project = "my-project"
  release = { url = "https://example.com/samya", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
}

run "the_papers_five_regions" {
  command = plan

  assert {
    condition     = length(output.sites) == 5 && length(distinct([for _, s in output.sites : s.region])) == 5
    error_message = "By default there is a site in each of five regions."
  }
}

run "addresses_stay_when_a_region_comes" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 4, sites = 2 }, us-west1 = { network = 0, sites = 0 } }
  }

  assert {
    condition     = output.sites["europe-west2-1"].address == "10.64.64.10"
    error_message = "A site's address depends on its region's number alone."
  }
}

run "one_network_for_one_region" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 1 }, us-west1 = { network = 1 } }
  }

  expect_failures = [var.regions]
}

run "a_cluster_has_a_site" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 0, sites = 0 } }
  }

  expect_failures = [var.regions]
}

run "a_group_does_not_shrink_to_grow" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 0, app_managers = 3, app_managers_max = 2 } }
  }

  expect_failures = [var.regions]
}

run "a_region_is_one_of_the_cloud" {
  command = plan

  variables {
    regions = { europe = { network = 0 } }
  }

  expect_failures = [var.regions]
}

run "networks_are_networks" {
  command = plan

  variables {
    client_cidrs = ["everywhere"]
  }

  expect_failures = [var.client_cidrs]
}

run "a_network_has_room" {
  command = plan

  variables {
    network_cidr = "10.64.0.0/24"
  }

  expect_failures = [var.network_cidr]
}

run "numbers_of_sites_that_left_stay_unused" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 4, sites = 2, gone = [1] } }
  }

  assert {
    condition     = join(",", sort(keys(output.sites))) == "europe-west2-2,europe-west2-3"
    error_message = "The number of a site that has left is passed over."
  }
}

run "a_region_has_so_many_sites_ever" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 0, sites = 10, gone = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] } }
  }

  expect_failures = [var.regions]
}

run "nodes_leave_the_site_its_address" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 4, nodes = 2 } }
    etcd    = { url = "https://example.com/etcd", sha256 = "1111111111111111111111111111111111111111111111111111111111111111" }
  }

  assert {
    condition     = join(",", output.sites["europe-west2-1"].addresses) == "10.64.64.10,10.64.64.30" && output.sites["europe-west2-1"].address == "10.64.64.10"
    error_message = "The first node has the address of a site of a single machine."
  }
  assert {
    condition     = join(",", values(output.etcd)) == "10.64.79.252,10.64.79.251,10.64.79.250"
    error_message = "There are three members of etcd."
  }
}

run "nodes_and_members_have_addresses_of_their_own" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 4, sites = 10, nodes = 3, gone = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], zones = ["a", "b"] } }
    etcd    = { url = "https://example.com/etcd", sha256 = "1111111111111111111111111111111111111111111111111111111111111111" }
  }

  assert {
    condition     = length(distinct(concat(values(output.etcd), flatten([for _, s in output.sites : s.addresses])))) == 33
    error_message = "No two machines have the same address."
  }
}

run "nodes_need_an_etcd" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 0, nodes = 2 } }
  }

  expect_failures = [var.etcd]
}

run "another_etcd_will_do" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 0, nodes = 2, etcd_endpoints = ["10.0.0.1:2379"] } }
  }

  assert {
    condition     = length(output.etcd) == 0
    error_message = "No etcd is made where there is one."
  }
}

run "endpoints_are_addresses" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 0, nodes = 2, etcd_endpoints = ["https://10.0.0.1:2379"] } }
  }

  expect_failures = [var.regions]
}

run "a_site_has_three_nodes_at_most" {
  command = plan

  variables {
    regions = { europe-west2 = { network = 0, nodes = 4, etcd_endpoints = ["10.0.0.1:2379"] } }
  }

  expect_failures = [var.regions]
}
