-- Asks to be told of commits.
listen tally_epoch
