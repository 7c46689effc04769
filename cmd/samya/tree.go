package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/name"
)

func (t *talker) entityMove() *cobra.Command {
	var parent string
	var top bool
	cmd := &cobra.Command{
		Use:   "move NAME {--parent NAME | --top}",
		Short: "Give an entity another parent",
		Long: `Gives an entity another parent. All that stands below it comes along, and the
tokens that are out of it: the old ancestors get them back, the new ones are charged,
also beyond their limits.`,
		Example:           "  samya entity move acme/vm --parent acme\n  samya entity move acme/vm --top",
		Args:              exactly("NAME"),
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			errs := []error{name.Entity("name", args[0]), name.Parent("parent", parent)}
			if top == (parent != "") {
				errs = append(errs, &name.Error{Field: "parent", Problem: "pass either --parent or --top"})
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return within(cmd.Context(), 0, func(ctx context.Context) error {
				e, err := client.MoveEntity(ctx, args[0], parent)
				if err != nil {
					return fmt.Errorf("move %s: %w", args[0], err)
				}
				return t.print(e, func(w io.Writer) { row(w, e.Name+" stands "+where(e.Parent)) })
			})
		},
	}
	cmd.Flags().StringVar(&parent, "parent", "", "entity to stand below")
	cmd.Flags().BoolVar(&top, "top", false, "stand below none")
	return cmd
}

// where returns the place of an entity below its parent.
func where(parent string) string {
	if parent == "" {
		return "at the top"
	}
	return "below " + parent
}

func (t *talker) entityTree() *cobra.Command {
	return &cobra.Command{
		Use:   "tree [NAME]",
		Short: "Show which entities stand below which: all, or one with those below it",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{fmt.Errorf("%d arguments, want at most NAME", len(args))}
			}
			return nil
		},
		ValidArgsFunction: t.completeEntities,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := strings.Join(args, "")
			if err := name.Parent("name", root); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			entities, err := list(cmd.Context(), client, "")
			if err != nil {
				return err
			}
			tree, found := treeOf(entities, root)
			if !found {
				return fmt.Errorf("show %s: %w", root, apierr.NotFound(root))
			}
			return t.print(map[string]any{"entities": tree}, func(w io.Writer) {
				row(w, "NAME", "LIMIT")
				printTree(w, tree, "")
			})
		},
	}
}

// branch is an entity with the entities below it.
type branch struct {
	httpapi.Entity
	Below []*branch `json:"below,omitempty"`
}

// treeOf puts entities below their parents, in the order of the list. It returns the
// entities at the top, or only the entity root if root is not empty. The list was read
// page by page, and entities may have moved meanwhile. An entity without its parent in
// the list, or with a loop above it, comes to the top.
func treeOf(entities []httpapi.Entity, root string) (tree []*branch, found bool) {
	all := make(map[string]*branch, len(entities))
	for _, e := range entities {
		all[e.Name] = &branch{Entity: e}
	}
	under := func(e *branch) *branch {
		if e == nil {
			return nil
		}
		return all[e.Parent]
	}
	tree = []*branch{}
	for _, e := range entities {
		b := all[e.Name]
		// fast makes two steps for each step of slow: they meet if there is a loop.
		slow, fast := b, under(b)
		for fast != nil && fast != slow {
			slow, fast = under(slow), under(under(fast))
		}
		if up := under(b); up != nil && fast == nil {
			up.Below = append(up.Below, b)
		} else {
			tree = append(tree, b)
		}
	}
	if root == "" {
		return tree, true
	}
	if all[root] == nil {
		return nil, false
	}
	return []*branch{all[root]}, true
}

func printTree(w io.Writer, tree []*branch, indent string) {
	for _, b := range tree {
		row(w, indent+b.Name, b.Limit)
		printTree(w, b.Below, indent+"  ")
	}
}
