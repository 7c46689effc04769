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
  description = "Private addresses of this region's sites, by the site's name. They stay with the site for ever."
  type        = map(string)
  nullable    = false

  validation {
    condition     = alltrue([for _, a in var.addresses : can(cidrhost("${a}/32", 0))])
    error_message = "An address must be an IPv4 address."
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
  description = "Private addresses of sites of the cluster, of all regions: whom a process asks first."
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
  description = "Device of a site's persistent disk, as its machine sees it."
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
  description = "Where things are on machines: the `program`, `config` for keys and certificates, `data` for a site's state, `library` for scripts, and `etc` for the machine's own description."
  type = object({
    program = optional(string, "/usr/local/bin/samya")
    config  = optional(string, "/etc/samya")
    data    = optional(string, "/var/lib/samya")
    library = optional(string, "/usr/local/lib/samya")
    etc     = optional(string, "/etc")
  })
  default  = {}
  nullable = false
}
