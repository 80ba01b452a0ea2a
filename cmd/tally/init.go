package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tallystick/tallystick/cmd/tally/internal/config"
)

func newInitCommand(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented tally.yaml to start from",
		Long: "init writes a configuration with every part explained to the file that --config names.\n" +
			"It fits the files that tally generate writes; put in your own sources and fields.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := writeNew(a.configFile, config.InitTemplate().Text(), force); err != nil {
				return err
			}
			a.printf("wrote %s\nnext: adjust it, then tally migrate, tally check, tally run\n",
				a.configFile)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file if it is there")
	return cmd
}

// writeNew writes a file that must not be there yet, unless force is given.
func writeNew(path, text string, force bool) (err error) {
	file, err := createNew(path, force)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.WriteString(text); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// createNew creates a file that must not be there yet, unless force is given.
func createNew(path string, force bool) (*os.File, error) {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, mode, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, usageError(fmt.Errorf("%s is there already; --force overwrites it", path))
	}
	if err != nil {
		return nil, fmt.Errorf("create the file: %w", err)
	}
	return file, nil
}
