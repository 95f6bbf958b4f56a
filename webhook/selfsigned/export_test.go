package selfsigned

// The resources of the targets.
var (
	Mutating    = mutating
	Validating  = validating
	Definitions = definitions
)
