package coreslab

// Costs are the costs of a site's steps on a machine, in nanoseconds of a core, unless a
// comment says otherwise. [Calibrate] measures them. Each holds for a single number of
// entities.
type Costs struct {
	// Entities is the number of entities that were used alike, Remembered the number of ids
	// in the table.
	Entities   int `json:"entities"`
	Remembered int `json:"remembered"`
	// Receive is for a message of a socket, and Decode for each call in it: decoding,
	// checks, the key of the id, and the hand-over to the engine.
	Receive float64 `json:"receive"`
	Decode  float64 `json:"decode"`
	// Step is for a request that steps the core, Stepped for its part of a drain.
	Step    float64 `json:"step"`
	Stepped float64 `json:"stepped"`
	// Serve is for a request at a shard without the table and its part of the log, Table for the time in which the
	// lock of the table is held. Hot is the same with few ids. Served is its part of a drain.
	Serve  float64 `json:"serve"`
	Table  float64 `json:"table"`
	Hot    float64 `json:"table_hot"`
	Served float64 `json:"served"`
	// Drain is for a drain, whatever it has. Forget is for an old id that is forgotten.
	Drain  float64 `json:"drain"`
	Forget float64 `json:"forget"`
	// Append is for a commit, and Encode for each request in it. Join is for a request that a
	// shard has encoded, which costs the shard Pack.
	Append float64 `json:"append"`
	Encode float64 `json:"encode"`
	Join   float64 `json:"join"`
	Pack   float64 `json:"pack"`
	// Syncs are times of a sync of the disk, Pairs the same while another sync is under way:
	// wall time, in which no core is used. They are sorted.
	Syncs []float64 `json:"syncs"`
	Pairs []float64 `json:"pairs"`
	// Finish is for an answer handed to its stream, Reply for its encoding and Send for a
	// message.
	Finish float64 `json:"finish"`
	Reply  float64 `json:"reply"`
	Send   float64 `json:"send"`
	// Wake is for waking another goroutine, Handover the wall time until the woken one runs.
	// Yield is for giving up a core, Transfer for the move of a cache line.
	Wake     float64 `json:"wake"`
	Handover float64 `json:"handover"`
	Yield    float64 `json:"yield"`
	Transfer float64 `json:"transfer"`
	// Client is for a call at a client on the same machine, with its answer, and
	// ClientMessage for a message.
	Client        float64 `json:"client"`
	ClientMessage float64 `json:"client_message"`
}
