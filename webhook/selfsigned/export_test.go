package selfsigned

// The resources of the targets.
var (
	Mutating    = mutating
	Validating  = validating
	Definitions = definitions
)

// MostAuthorities is the largest number of certificates in a bundle.
const MostAuthorities = mostAuthorities
