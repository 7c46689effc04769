variable "cluster" {
  description = "Name of the cluster."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z](?:[a-z0-9-]{0,10}[a-z0-9])?$", var.cluster))
    error_message = "The name must be of a-z, 0-9 and '-', at most 12 long, and begin with a letter."
  }
}

variable "region" {
  description = "Name of the region."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$", var.region))
    error_message = "The name of a region must be of a-z, 0-9 and '-', at most 32 long, and begin with a letter."
  }
}

variable "addresses" {
  description = "Private addresses of this region's sites, by the site's name, and of further nodes, by the site's and the node's: europe-west2-1-b. They stay for ever."
  type        = map(string)
  nullable    = false

  validation {
    condition     = alltrue([for _, a in var.addresses : can(cidrhost("${a}/32", 0))])
    error_message = "An address must be an IPv4 address."
  }
}

variable "nodes" {
  description = "Of the machines that are nodes of a site with its log in etcd: the site, and the name of the node. The node a may begin the log."
  type = map(object({
    site = string
    node = string
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for name, _ in var.nodes : contains(keys(var.addresses), name)])
    error_message = "A node must have an address."
  }
  validation {
    condition     = length(var.nodes) == 0 || length(var.etcd.endpoints) > 0
    error_message = "Nodes need an etcd."
  }
}

variable "etcd" {
  description = "The etcd of the nodes: addresses for clients as host:port; the `members` that this region is to have, addresses by name; and the release of etcd that these members fetch. Without members others run the etcd, and compact it."
  type = object({
    endpoints = optional(list(string), [])
    members   = optional(map(string), {})
    release   = optional(object({ url = string, sha256 = string }))
  })
  default  = {}
  nullable = false

  validation {
    condition     = length(var.etcd.members) == 0 || var.etcd.release != null
    error_message = "Members of etcd need a release of etcd."
  }
}

variable "founders" {
  description = "Names of the sites that founded the cluster, of all regions. They never change; other sites join."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.founders) >= 1 && length(distinct(var.founders)) == length(var.founders)
    error_message = "There must be a site, and no two of one name."
  }
}

variable "seeds" {
  description = "Private addresses of sites of the cluster and of all their nodes, of all regions: whom a process asks first."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.seeds) >= 1
    error_message = "There must be an address to ask first."
  }
}

variable "site_settings" {
  description = "Further flags of all sites, by name without dashes."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([for name, value in var.site_settings :
      can(regex("^[a-z](?:[a-z0-9-]*[a-z0-9])?$", name)) && !contains(local.reserved_settings, name) && can(regex("^[A-Za-z0-9.,:/_+=@-]*$", value))
    ])
    error_message = "A setting must be the name of a flag that the layout does not decide, and its value without blanks, quotes, '%', '$' and '\\'."
  }
}

variable "app_manager_settings" {
  description = "Further flags of all app managers, by name without dashes."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([for name, value in var.app_manager_settings :
      can(regex("^[a-z](?:[a-z0-9-]*[a-z0-9])?$", name)) && !contains(local.reserved_settings, name) && can(regex("^[A-Za-z0-9.,:/_+=@-]*$", value))
    ])
    error_message = "A setting must be the name of a flag that the layout does not decide, and its value without blanks, quotes, '%', '$' and '\\'."
  }
}

variable "release" {
  description = "A release: an address from which machines fetch an archive of `make release` or the program alone, and the SHA-256 of the fetched file in hexadecimal."
  type = object({
    url    = string
    sha256 = string
  })
  nullable = false

  validation {
    condition     = can(regex("^https://[A-Za-z0-9.:/_%~?&=+-]+$", var.release.url)) && can(regex("^[0-9a-f]{64}$", var.release.sha256))
    error_message = "The address must begin with https://, and the checksum be 64 hexadecimal digits."
  }
}

variable "secrets" {
  description = "How machines fetch secrets: `fetch` is a shell command that prints the secret named by $1."
  type = object({
    fetch = string
  })
  nullable = false
}

variable "data_device" {
  description = "Device of the persistent disk of a site or of a member of etcd, as its machine sees it."
  type        = string
  nullable    = false

  validation {
    condition     = startswith(var.data_device, "/dev/")
    error_message = "It must be below /dev."
  }
}

variable "serve_address" {
  description = "Where app managers listen for clients: `machine`, at the machine's own address, or `any`, which load balancers need that leave their own address in packets."
  type        = string
  default     = "machine"
  nullable    = false

  validation {
    condition     = contains(["machine", "any"], var.serve_address)
    error_message = "It must be machine or any."
  }
}

variable "paths" {
  description = "Where things are on machines: the `program` samya, the program `etcd`, `config` for keys and certificates, `data` and `etcd_data` for the state of a site and of a member of etcd, `library` for scripts, and `etc` for the machine's own description."
  type = object({
    program   = optional(string, "/usr/local/bin/samya")
    etcd      = optional(string, "/usr/local/bin/etcd")
    config    = optional(string, "/etc/samya")
    data      = optional(string, "/var/lib/samya")
    etcd_data = optional(string, "/var/lib/etcd")
    library   = optional(string, "/usr/local/lib/samya")
    etc       = optional(string, "/etc")
  })
  default  = {}
  nullable = false
}
