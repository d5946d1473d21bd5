#!/bin/sh
# Cleans an account of the sandbox, which no cloud knows: there is nothing to wipe, so it only says what a real
# cleaner would. Its last argument is the name of the account's Secret in $CREDFLEET_NAMESPACE; a real cleaner
# reads the credential there by $KUBECONFIG, deletes what it finds in the account, and ends with 0 when it is empty.
set -eu
echo "would wipe $CREDFLEET_TYPE account $1 of namespace $CREDFLEET_NAMESPACE"
