variable "project" {
  description = "Id of the project."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "The id of a project is of a-z, 0-9 and '-', 6 to 30 long, and begins with a letter."
  }
}

variable "cluster" {
  description = "Name of the cluster."
  type        = string
  default     = "samya"

  validation {
    condition     = can(regex("^[a-z](?:[a-z0-9-]{0,10}[a-z0-9])?$", var.cluster))
    error_message = "The name must be of a-z, 0-9 and '-', at most 12 long, and begin with a letter."
  }
}

variable "regions" {
  description = "The servers of each region, by the cloud's name of it: `sites`, which hold tokens, `gone`, the numbers of sites that have left and are never used again, `app_managers`, which serve clients, and `app_managers_max`, up to which their group grows under load. `nodes` of each site are 1, a machine with its log on disk, or 2 or 3 in zones of their own with their log in an etcd of the region: the one at `etcd_endpoints`, host:port each, else three machines of its own. The nodes never go back to 1. `network` numbers the region's part of `network_cidr` and stays for ever. `zones` are letters."
  type = map(object({
    network          = number
    sites            = optional(number, 1)
    nodes            = optional(number, 1)
    etcd_endpoints   = optional(list(string), [])
    gone             = optional(list(number), [])
    app_managers     = optional(number, 2)
    app_managers_max = optional(number)
    zones            = optional(list(string), ["a", "b", "c"])
  }))
  default = {
    us-west1             = { network = 0 }
    asia-east2           = { network = 1 }
    europe-west2         = { network = 2 }
    australia-southeast1 = { network = 3 }
    southamerica-east1   = { network = 4 }
  }

  validation {
    condition     = length(var.regions) >= 1 && length(var.regions) <= 10
    error_message = "There must be 1 to 10 regions."
  }
  validation {
    condition     = alltrue([for name, _ in var.regions : can(regex("^[a-z]+-[a-z]+[0-9]+$", name))])
    error_message = "A region is named as the cloud names it, such as us-west1."
  }
  validation {
    condition = alltrue(flatten([for _, r in var.regions : [
      for n in [r.sites, r.app_managers, coalesce(r.app_managers_max, r.app_managers)] : n >= 0 && n <= 10 && floor(n) == n
    ]]))
    error_message = "The sites and the app managers of a region must be 0 to 10."
  }
  validation {
    condition = alltrue([for _, r in var.regions : length(distinct(r.gone)) == length(r.gone) && r.sites + length(r.gone) <= 20 && alltrue([
      for n in r.gone : n >= 1 && n <= 20 && floor(n) == n
    ])])
    error_message = "The numbers of sites that have left must be 1 to 20, each once; a region has at most 20 sites ever."
  }
  validation {
    condition     = alltrue([for _, r in var.regions : r.app_managers_max == null || try(r.app_managers_max >= r.app_managers, false)])
    error_message = "app_managers_max must be at least app_managers."
  }
  validation {
    condition     = alltrue([for _, r in var.regions : contains([1, 2, 3], r.nodes)])
    error_message = "The nodes of a site must be 1 to 3."
  }
  validation {
    condition = alltrue(flatten([for _, r in var.regions : [
      for e in r.etcd_endpoints : can(regex("^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?:[1-9][0-9]{0,4}$", e))
    ]]))
    error_message = "Endpoints of etcd are host:port, without https://."
  }
  validation {
    condition     = sum(concat([0], [for _, r in var.regions : r.sites])) >= 1
    error_message = "At least one region must have a site."
  }
  validation {
    condition = (
      length(distinct([for _, r in var.regions : r.network])) == length(var.regions) &&
      alltrue([for _, r in var.regions : r.network >= 0 && r.network <= 15 && floor(r.network) == r.network])
    )
    error_message = "The networks of regions must be 0 to 15, and no two the same."
  }
  validation {
    condition     = alltrue([for _, r in var.regions : length(r.zones) >= 1 && alltrue([for z in r.zones : can(regex("^[a-z]$", z))])])
    error_message = "A region must have a zone, and zones are letters."
  }
}

variable "founders" {
  description = "Names of the sites that found the cluster, if not all sites at the first apply. Only the first apply looks at it: the state remembers the founders."
  type        = list(string)
  default     = null
}

variable "seeds" {
  description = "Names of sites that processes ask first; by default the founders. Name others before the last founder leaves. A change rolls the app managers."
  type        = list(string)
  default     = null
}

variable "release" {
  description = "A release: an address from which machines fetch an archive of `make release` or the program alone, and the SHA-256 of the fetched file in hexadecimal."
  type = object({
    url    = string
    sha256 = string
  })

  validation {
    condition     = can(regex("^https://[A-Za-z0-9.:/_%~?&=+-]+$", var.release.url)) && can(regex("^[0-9a-f]{64}$", var.release.sha256))
    error_message = "The address must begin with https://, and the checksum be 64 hexadecimal digits."
  }
}

variable "network_cidr" {
  description = "Private addresses of the cluster; each region has a sixteenth."
  type        = string
  default     = "10.64.0.0/16"

  validation {
    condition     = can(cidrhost(var.network_cidr, 0)) && try(tonumber(split("/", var.network_cidr)[1]) <= 20, false)
    error_message = "It must be an IPv4 network of at least 4,096 addresses, such as 10.64.0.0/16."
  }
}

variable "client_cidrs" {
  description = "Networks from which clients may come. By default the cluster's networks alone."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.client_cidrs : can(cidrhost(c, 0))])
    error_message = "They must be networks, such as 192.0.2.0/24."
  }
}

variable "monitoring_cidrs" {
  description = "Networks from which Prometheus may read metrics. By default none."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.monitoring_cidrs : can(cidrhost(c, 0))])
    error_message = "They must be networks, such as 10.0.0.0/24."
  }
}

variable "public" {
  description = "Whether app managers have public addresses. Otherwise they are reached within the network alone."
  type        = bool
  default     = false
}

variable "site_machine" {
  description = "Kind of machine and disk of sites and of their nodes, the disk in GB."
  type = object({
    type      = optional(string, "n2-standard-4")
    disk_type = optional(string, "pd-ssd")
    disk_size = optional(number, 100)
  })
  default = {}

  validation {
    condition     = var.site_machine.disk_size >= 10 && var.site_machine.disk_size <= 65536
    error_message = "The disk must have 10 to 65536 GB."
  }
}

variable "app_manager_machine" {
  description = "Kind of machine of app managers."
  type = object({
    type = optional(string, "n2-standard-2")
  })
  default = {}
}

variable "image" {
  description = "Image of all machines, with cloud-init, systemd and curl."
  type        = string
  default     = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"
}

variable "etcd" {
  description = "The etcd of regions with sites of several nodes, unless such a region names `etcd_endpoints`: a release of etcd, its address and SHA-256 as in `release`, and the kind of machine and disk of its three members, the disk in GB."
  type = object({
    url       = string
    sha256    = string
    type      = optional(string, "n2-standard-2")
    disk_type = optional(string, "pd-ssd")
    disk_size = optional(number, 32)
  })
  default = null

  validation {
    condition = var.etcd == null || try(
      can(regex("^https://[A-Za-z0-9.:/_%~?&=+-]+$", var.etcd.url)) && can(regex("^[0-9a-f]{64}$", var.etcd.sha256)) && var.etcd.disk_size >= 20, false
    )
    error_message = "The address must begin with https://, the checksum be 64 hexadecimal digits, and the disk have at least 20 GB."
  }
  validation {
    condition     = var.etcd != null || alltrue([for _, r in var.regions : r.nodes == 1 || length(r.etcd_endpoints) > 0])
    error_message = "Sites of several nodes need an etcd: name a release of etcd, or etcd_endpoints of the region."
  }
}

variable "site_settings" {
  description = "Further flags of all sites, by name without dashes: `{ \"request-retention\" = \"10m\" }`. `samya site --help` lists them."
  type        = map(string)
  default     = {}
}

variable "app_manager_settings" {
  description = "Further flags of all app managers, by name without dashes. `samya appmgr --help` lists them."
  type        = map(string)
  default     = {}
}

variable "notification_channels" {
  description = "Channels of Cloud Monitoring that are told of alerts."
  type        = list(string)
  default     = []
}

variable "protect_data" {
  description = "Whether the disks of sites and of etcd, which hold the books, are refused to be destroyed. To destroy a cluster, apply false first."
  type        = bool
  default     = true
}
