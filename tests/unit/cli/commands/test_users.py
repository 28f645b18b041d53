"""Users, permissions, virtual hosts."""

from __future__ import annotations

from tests.support.served import Served


def test_user_life(served: Served) -> None:
    output = served.ctl("add_user", "bob", "pw")
    assert output.out.startswith('Adding user "bob" ...\nDone. Don\'t forget')
    output = served.ctl("add_user", "bob", "pw")
    assert (output.code, output.err) == (70, 'Error:\nUser "bob" already exists\n')
    assert (
        served.ctl("set_user_tags", "bob", "a", "b").out
        == 'Setting tags for user "bob" to [a, b] ...\n'
    )
    assert served.ctl("authenticate_user", "bob", "pw").out.endswith("Success\n")
    assert served.ctl("authenticate_user", "bob", "no").code == 65
    assert served.ctl("change_password", "bob", stdin="other\n").code == 0
    assert served.ctl("authenticate_user", "bob", "other").code == 0
    assert "bob\t[a, b]" in served.ctl("list_users").out
    assert served.ctl("clear_password", "bob").code == 0
    assert served.ctl("authenticate_user", "bob", "other").code == 65
    assert served.ctl("delete_user", "bob").code == 0
    output = served.ctl("delete_user", "bob")
    assert (output.code, output.err) == (67, 'Error:\nUser "bob" does not exist\n')


def test_a_password_must_come_from_somewhere(served: Served) -> None:
    output = served.ctl("add_user", "bob")
    assert (output.code, output.err) == (
        65,
        "Error:\nPassword is not provided via argument or stdin\n",
    )
    assert served.ctl("add_user", "", "pw").code == 65


def test_permissions(served: Served) -> None:
    served.ctl("add_user", "bob", "pw")
    output = served.ctl("set_permissions", "-p", "/", "bob", "^a", ".*", "")
    assert output.out == 'Setting permissions for user "bob" in vhost "/" ...\n'
    assert "bob\t^a\t.*\t" in served.ctl("list_permissions").out
    assert served.ctl("set_permissions", "nosuch", "", "", "").code == 67
    assert served.ctl("set_permissions", "-p", "nope", "bob", "", "", "").code == 69
    assert served.ctl("clear_permissions", "bob").code == 0
    assert served.ctl("clear_permissions", "bob").code == 0
    assert served.ctl("clear_permissions", "-p", "nope", "bob").code == 69


def test_vhosts(served: Served) -> None:
    assert served.ctl("add_vhost", "v1").out == 'Adding vhost "v1" ...\n'
    assert served.ctl("add_vhost", "v1").code == 0
    assert served.ctl("add_vhost", "v2", "--default-queue-type", "bogus").code == 64
    assert served.ctl("delete_vhost", "v1").out == 'Deleting vhost "v1" ...\n'
    output = served.ctl("delete_vhost", "v1")
    assert (output.code, output.err) == (65, "Virtual host 'v1' does not exist\n")


def test_vhost_metadata(served: Served) -> None:
    assert served.ctl("add_vhost", "v1", "--default-queue-type", "classic").code == 0
    assert "v1\tclassic" in served.ctl("list_vhosts", "name", "default_queue_type").out
    output = served.ctl("update_vhost_metadata", "v1", "--description", "new", "--tags", "a,b")
    assert output.out == 'Updating metadata of vhost "v1" ...\n'
    columns = ("name", "description", "tags", "default_queue_type")
    assert "v1\tnew\t[a, b]\tclassic" in served.ctl("list_vhosts", *columns).out
    served.ctl("update_vhost_metadata", "v1", "--default-queue-type", "undefined")
    assert "v1\tundefined" in served.ctl("list_vhosts", "name", "default_queue_type").out
    output = served.ctl("update_vhost_metadata", "v1", "--default-queue-type", "quorum")
    assert (output.code, output.err) == (64, "Error:\nUnsupported default queue type 'quorum'\n")
    output = served.ctl("add_vhost", "v3", "--default-queue-type", "stream")
    assert (output.code, output.err) == (64, "Error:\nUnsupported default queue type 'stream'\n")
    assert "v3" not in served.node.vhosts
    assert served.ctl("update_vhost_metadata", "v1").code == 64
    output = served.ctl("update_vhost_metadata", "nosuch", "--tags", "a")
    assert (output.code, output.err) == (65, "Virtual host 'nosuch' does not exist\n")


def test_tracing(served: Served) -> None:
    output = served.ctl("trace_on")
    assert output.out == 'Starting tracing for vhost "/" ...\nTrace enabled for vhost /\n'
    assert "/\ttrue" in served.ctl("list_vhosts", "name", "tracing").out
    output = served.ctl("trace_off", "-p", "/")
    assert output.out == 'Stopping tracing for vhost "/" ...\nTrace disabled for vhost /\n'
    assert "/\tfalse" in served.ctl("list_vhosts", "name", "tracing").out
    output = served.ctl("trace_on", "-p", "nosuch")
    assert (output.code, output.err) == (65, "Virtual host 'nosuch' does not exist\n")
    assert "nosuch" not in served.node.vhosts


def test_topic_permissions(served: Served) -> None:
    assert served.ctl("set_topic_permissions", "guest", "amq.topic", "a", "b").out == (
        'Setting topic permissions on "amq.topic" for user "guest" in vhost "/" ...\n'
    )
    assert served.ctl("list_topic_permissions").out == (
        'Listing topic permissions for vhost "/" ...\n'
        "user\texchange\twrite\tread\nguest\tamq.topic\ta\tb\n"
    )
    assert served.ctl("list_user_topic_permissions", "guest").out == (
        'Listing topic permissions for user "guest" ...\n/\tamq.topic\ta\tb\n'
    )
    assert served.ctl("clear_topic_permissions", "guest", "amq.topic").out == (
        'Clearing topic permissions on "amq.topic" for user "guest" in vhost "/" ...\n'
    )
    assert served.ctl("clear_topic_permissions", "guest").code == 0
    output = served.ctl("set_topic_permissions", "nope", "amq.topic", "a", "b")
    assert (output.code, output.err) == (67, "Error:\nUser nope does not exist\n")
    assert served.ctl("list_user_topic_permissions", "nope").code == 69
    assert served.ctl("set_topic_permissions", "guest", "amq.topic", "[", "b").code == 69
    assert served.ctl("set_topic_permissions", "-p", "nope", "guest", "x", "a", "b").code == 69


def test_permissions_in_every_virtual_host(served: Served) -> None:
    served.ctl("-q", "add_user", "ann", "secret")
    served.ctl("-q", "add_vhost", "v/1")
    output = served.ctl("set_permissions_globally", "ann", "a", "b", "c")
    assert output == (0, 'Setting permissions for user "ann" in all virtual hosts ...\n', "")
    assert served.ctl("-s", "list_user_permissions", "ann").out == "/\ta\tb\tc\nv/1\ta\tb\tc\n"
    assert served.ctl("-q", "set_permissions_globally", "nobody", "", "", "").code == 67
    assert served.ctl("-q", "set_permissions_globally", "ann", "(", "", "").code == 69


def test_permissions_in_a_virtual_host_that_is_missing(served: Served) -> None:
    for argv in (
        ("set_permissions", "guest", "", "", ""),
        ("clear_permissions", "guest"),
        ("set_topic_permissions", "guest", "amq.topic", "", ""),
    ):
        output = served.ctl("-p", "nope", *argv)
        assert (output.code, output.err) == (69, "Error:\nVirtual host nope does not exist\n")


def test_bad_patterns_are_told_in_words(served: Served) -> None:
    text = "Error:\ninvalid regular expression: missing )\n"
    assert served.ctl("set_permissions", "guest", "(", "", "").err == text
    assert served.ctl("set_topic_permissions", "guest", "amq.topic", "(", "").err == text


def test_an_empty_name_is_none(served: Served) -> None:
    served.ctl("set_topic_permissions", "guest", "amq.topic", "a", "b")
    for argv in (
        ("clear_topic_permissions", "guest", ""),
        ("delete_vhost", ""),
        ("clear_policy", ""),
        ("purge_queue", ""),
        ("delete_queue", ""),
        ("set_global_parameter", "", "1"),
    ):
        output = served.ctl(*argv)
        assert output.code == 65
        assert "cannot be an empty string" in output.err
    assert "amq.topic" in served.ctl("list_topic_permissions").out
