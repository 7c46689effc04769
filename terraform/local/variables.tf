variable "cluster" {
  description = "Name of the cluster."
  type        = string
  default     = "samya"

  validation {
    condition     = can(regex("^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$", var.cluster))
    error_message = "The name must be of a-z, 0-9 and '-', at most 32 long, and begin with a letter."
  }
}

variable "regions" {
  description = "The servers of each region, by the region's name: `sites`, which hold tokens, and `app_managers`, which serve clients. Both numbers may change at any time: a site that is too many hands over what it holds and leaves, the last of its region first. `nodes` of each site are 1, a process with its log on disk, or 2 or 3 with their log in an etcd of the region, which is started as well; they never go back to 1."
  type = map(object({
    sites        = optional(number, 1)
    nodes        = optional(number, 1)
    app_managers = optional(number, 2)
  }))
  default = {
    asia-east2           = {}
    australia-southeast1 = {}
    europe-west2         = {}
    southamerica-east1   = {}
    us-west1             = {}
  }

  validation {
    condition     = length(var.regions) >= 1 && length(var.regions) <= 10
    error_message = "There must be 1 to 10 regions."
  }
  validation {
    condition     = alltrue([for name, _ in var.regions : can(regex("^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$", name))])
    error_message = "The name of a region must be of a-z, 0-9 and '-', at most 32 long, and begin with a letter."
  }
  validation {
    condition = alltrue(flatten([for _, r in var.regions : [
      for n in [r.sites, r.app_managers] : n >= 0 && n <= 10 && floor(n) == n
    ]]))
    error_message = "The sites and the app managers of a region must be 0 to 10."
  }
  validation {
    condition     = alltrue([for _, r in var.regions : contains([1, 2, 3], r.nodes)])
    error_message = "The nodes of a site must be 1 to 3."
  }
  validation {
    condition     = sum(concat([0], [for _, r in var.regions : r.sites])) >= 1
    error_message = "At least one region must have a site."
  }
}

variable "replace" {
  description = "Sites to be replaced: each leaves in favour of a new site of its region, which has the next name. A site that has left may stay in the list."
  type        = list(string)
  default     = []
}

variable "lost" {
  description = "Sites whose data is lost for good: each is written off, and replaced. The tokens that it held are out of use until the entity is reconciled."
  type        = list(string)
  default     = []
}

variable "site_settings" {
  description = "Further flags of all sites, by name without dashes: `{ \"request-retention\" = \"10m\" }`. `samya site --help` lists them."
  type        = map(string)
  default     = {}

  validation {
    condition = alltrue([for name, _ in var.site_settings :
      can(regex("^[a-z](?:[a-z0-9-]*[a-z0-9])?$", name)) && !contains(local.reserved_settings, name)
    ])
    error_message = "A setting must be the name of a flag that the layout does not decide."
  }
}

variable "app_manager_settings" {
  description = "Further flags of all app managers, by name without dashes. `samya appmgr --help` lists them."
  type        = map(string)
  default     = {}

  validation {
    condition = alltrue([for name, _ in var.app_manager_settings :
      can(regex("^[a-z](?:[a-z0-9-]*[a-z0-9])?$", name)) && !contains(local.reserved_settings, name)
    ])
    error_message = "A setting must be the name of a flag that the layout does not decide."
  }
}

variable "samya" {
  description = "The program `samya`. Another program at the same place is an upgrade: the next apply starts all processes anew, in turn."
  type        = string
  default     = "../../bin/samya"

  validation {
    condition     = fileexists(var.samya)
    error_message = "There is no such file; `make build` builds it."
  }
}

variable "etcd" {
  description = "The program `etcd`, for regions with sites of several nodes; by default `etcd` of the PATH."
  type        = string
  default     = ""
  nullable    = false
}

variable "directory" {
  description = "Directory of the cluster, for it alone: data, logs, and the state of its processes. Destroying removes it."
  type        = string
  default     = "samya-local"

  validation {
    condition     = !contains(["", "/", ".", ".."], var.directory)
    error_message = "It must be a directory of its own."
  }
}

variable "site_port" {
  description = "First of 300 ports of 127.0.0.1 for sites."
  type        = number
  default     = 7001

  validation {
    condition     = var.site_port >= 1 && var.site_port <= 65236 && floor(var.site_port) == var.site_port
    error_message = "It must be 1 to 65236."
  }
}

variable "app_manager_port" {
  description = "First of 300 ports of 127.0.0.1 for app managers."
  type        = number
  default     = 8080

  validation {
    condition     = var.app_manager_port >= 1 && var.app_manager_port <= 65236 && floor(var.app_manager_port) == var.app_manager_port
    error_message = "It must be 1 to 65236."
  }
  validation {
    condition     = abs(var.app_manager_port - var.site_port) >= 300
    error_message = "The ports of sites and of app managers must lie 300 apart."
  }
}

variable "tls" {
  description = "Whether processes encrypt their connections, and know callers by certificates. An authority of the cluster's own makes them, below the directory. Changing it ends all processes for a moment."
  type        = bool
  default     = true
  nullable    = false
}
