variable "project" {
  description = "Id of the project."
  type        = string
}

variable "cluster" {
  description = "Name of the cluster."
  type        = string
}

variable "region" {
  description = "The region, as the cloud names it."
  type        = string
}

variable "zones" {
  description = "The zones over which machines are spread."
  type        = list(string)
}

variable "network" {
  description = "Id of the network."
  type        = string
}

variable "cidr" {
  description = "Private addresses of the region."
  type        = string
}

variable "cluster_cidr" {
  description = "Private addresses of the cluster."
  type        = string
}

variable "sites" {
  description = "The machines of the region's sites, by the name of the site, or of a further node: the site, the name of the node, empty with the log on disk, the zone and the private address of each."
  type = map(object({
    site    = string
    node    = string
    zone    = string
    address = string
  }))
}

variable "etcd" {
  description = "The region's etcd: the addresses for clients, its members by name that the region is to have, each with zone and private address, and their release, kind of machine and disk. Null without nodes."
  type = object({
    endpoints = list(string)
    members = map(object({
      zone    = string
      address = string
    }))
    machine = object({
      url       = string
      sha256    = string
      type      = string
      disk_type = string
      disk_size = number
    })
  })
}

variable "founders" {
  description = "Names of the sites that founded the cluster."
  type        = list(string)
}

variable "seeds" {
  description = "Private addresses of sites and their nodes that a process asks first."
  type        = list(string)
}

variable "app_managers" {
  description = "How many app managers there are at least."
  type        = number
}

variable "app_managers_max" {
  description = "How many there are at most."
  type        = number
}

variable "release" {
  description = "The program: where it is fetched, and its checksum."
  type = object({
    url    = string
    sha256 = string
  })
}

variable "client_cidrs" {
  description = "Networks from which clients may come, beside the cluster's own."
  type        = list(string)
}

variable "monitoring_cidrs" {
  description = "Networks from which metrics may be read."
  type        = list(string)
}

variable "public" {
  description = "Whether app managers have a public address."
  type        = bool
}

variable "site_machine" {
  description = "Kind of machine and disk of sites."
  type = object({
    type      = string
    disk_type = string
    disk_size = number
  })
}

variable "app_manager_machine" {
  description = "Kind of machine of app managers."
  type = object({
    type = string
  })
}

variable "image" {
  description = "Image of all machines."
  type        = string
}

variable "site_settings" {
  description = "Further flags of all sites."
  type        = map(string)
}

variable "app_manager_settings" {
  description = "Further flags of all app managers."
  type        = map(string)
}

variable "site_accounts" {
  description = "Service account of each machine of sites, by the machine's name."
  type        = map(string)
}

variable "etcd_accounts" {
  description = "Service account of each member of etcd, by the member's name."
  type        = map(string)
}

variable "app_manager_account" {
  description = "Service account of app managers."
  type        = string
}

variable "notification_channels" {
  description = "Channels that are told of alerts."
  type        = list(string)
}

variable "protect_data" {
  description = "Whether the disks of sites and of etcd, which hold the books, are refused to be destroyed. To destroy a cluster, apply false first."
  type        = bool
}
