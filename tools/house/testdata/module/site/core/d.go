package core

// twice calls nobody by name.
func twice[F func()](f F) { f(); f() }
