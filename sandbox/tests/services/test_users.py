"""Who may log in to the sandbox's API server."""

from pulumi_sandbox.services.parts import (
    Account,
    User,
    enrol,
    from_token_file,
    kubeconfig_name,
    to_token_file,
)


def test_known_users_keep_their_tokens_and_take_the_groups_last_wanted():
    first = enrol([], [User("admin", ("system:masters",)), User("janitor")])
    second = enrol(first, [User("janitor", ("cleaners", "staff")), User("auditor")])
    assert [account.user for account in second] == [
        User("admin", ("system:masters",)),
        User("janitor", ("cleaners", "staff")),
        User("auditor"),
    ]
    assert [account.token for account in second[:2]] == [account.token for account in first]
    assert len({account.token for account in second}) == 3


def test_the_token_file_returns_every_user_with_any_name_and_groups():
    accounts = [
        Account(User("admin", ("system:masters",)), "one"),
        Account(User('o"dd, name', ("a", "b")), "two"),
        Account(User("system:serviceaccount:ns:sa"), "three"),
    ]
    assert from_token_file(to_token_file(accounts)) == accounts


def test_a_user_name_with_a_slash_names_a_file_in_the_folder():
    assert kubeconfig_name("../../etc/passwd") == "..%2F..%2Fetc%2Fpasswd.kubeconfig"


def test_a_token_is_not_shown_when_an_account_is_printed():
    printed = repr(Account(User("admin"), "sentinel"))
    assert "admin" in printed
    assert "sentinel" not in printed
