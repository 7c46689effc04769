package name_test

import (
	"fmt"

	"github.com/samya-db/samya/internal/name"
)

func ExampleEntity() {
	fmt.Println(name.Entity("entity", "acme/clothing/vm"))
	fmt.Println(name.Entity("entity", "acme//vm"))
	fmt.Println(name.Tokens("tokens", 0))
	// Output:
	// <nil>
	// entity: empty segment: begins or ends with '/', or has '//'
	// tokens: 0, at least 1
}
