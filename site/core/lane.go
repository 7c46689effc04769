package core

// Machine is the machine of one entity, opaque to all but the core.
type Machine = entity
