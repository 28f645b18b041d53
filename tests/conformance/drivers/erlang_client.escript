#!/usr/bin/env escript
%% RabbitMQ's Erlang client (amqp_client, as rabbitmq-server's package has it among its plugins) over the network:
%% erlang_client.escript PLUGINS URL. Prints `ok NAME` or `FAILED NAME ...` a check.
-mode(interpret).

main([Plugins, Url]) ->
    code:add_pathsz(filelib:wildcard(Plugins ++ "/*/ebin")),
    logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(credentials_obfuscation),
    ok = credentials_obfuscation:set_secret(<<"of this process alone">>),
    {ok, _} = application:ensure_all_started(amqp_client),
    {ok, Params} = amqp_uri:parse(Url),
    {ok, Connection} = amqp_connection:start(Params),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    [check(Name, Fun) || {Name, Fun} <- checks(Connection, Channel, Params)],
    check("close", fun() -> ok = amqp_channel:close(Channel), ok = amqp_connection:close(Connection) end),
    halt(0).

check(Name, Fun) ->
    try Fun() of
        _ -> io:format("ok ~s~n", [Name])
    catch
        Class:Reason -> io:format("FAILED ~s: ~0p:~0p~n", [Name, Class, Reason])
    end.

%% Records of rabbit_framing, whose header files the package has not: the fields by their places.
declare(Name) -> {'queue.declare', 0, Name, false, true, false, false, false, []}.
publish(Exchange, Key) -> publish(Exchange, Key, false).
publish(Exchange, Key, Mandatory) -> {'basic.publish', 0, Exchange, Key, Mandatory, false}.
basic() -> {'P_basic', undefined, undefined, undefined, undefined, undefined, undefined, undefined, undefined,
            undefined, undefined, undefined, undefined, undefined, undefined}.
persistent() -> setelement(5, basic(), 2).
message(Payload) -> {amqp_msg, persistent(), Payload}.
get_(Queue) -> {'basic.get', 0, Queue, true}.
consume(Queue, NoAck) -> {'basic.consume', 0, Queue, <<>>, false, NoAck, false, false, []}.

checks(Connection, Channel, Params) ->
    Queue = <<"suite.erlang">>,
    Call = fun(Method) -> amqp_channel:call(Channel, Method) end,
    [{"declare", fun() -> {'queue.declare_ok', Queue, 0, 0} = Call(declare(Queue)) end},
     {"publish and get", fun() ->
         ok = amqp_channel:call(Channel, publish(<<>>, Queue), message(<<"one">>)),
         {{'basic.get_ok', _, false, <<>>, Queue, 0}, {amqp_msg, Basic, <<"one">>}} = Call(get_(Queue)),
         2 = element(5, Basic)
      end},
     {"get from empty", fun() -> {'basic.get_empty', _} = Call(get_(Queue)) end},
     {"headers of every type", fun() ->
         Headers = [{<<"a">>, longstr, <<"b">>}, {<<"c">>, signedint, 1}, {<<"d">>, long, 1 bsl 40}, {<<"e">>, bool, true},
                    {<<"f">>, array, [{longstr, <<"x">>}, {signedint, -1}]}, {<<"g">>, table, [{<<"h">>, void, undefined}]},
                    {<<"i">>, double, 1.5}, {<<"j">>, timestamp, 1700000000}, {<<"k">>, byte, -1}, {<<"l">>, short, -2},
                    {<<"m">>, decimal, {2, 314}}, {<<"n">>, binary, <<0, 1>>}],
         ok = amqp_channel:call(Channel, publish(<<>>, Queue), {amqp_msg, setelement(4, basic(), Headers), <<>>}),
         {_, {amqp_msg, Basic, <<>>}} = Call(get_(Queue)),
         Headers = element(4, Basic)
      end},
     {"ten thousand confirms", fun() ->
         {'confirm.select_ok'} = Call({'confirm.select', false}),
         [ok = amqp_channel:cast(Channel, publish(<<>>, Queue), message(integer_to_binary(N))) || N <- lists:seq(1, 10000)],
         true = amqp_channel:wait_for_confirms(Channel, 120)
      end},
     {"consume in order, ack many", fun() ->
         {ok, Own} = amqp_connection:open_channel(Connection),
         {'basic.qos_ok'} = amqp_channel:call(Own, {'basic.qos', 0, 100, false}),
         {'basic.consume_ok', Tag} = amqp_channel:subscribe(Own, consume(Queue, false), self()),
         receive {'basic.consume_ok', Tag} -> ok end,
         lists:foreach(fun(N) ->
             Wanted = integer_to_binary(N),
             receive {{'basic.deliver', Tag, Delivery, false, <<>>, Queue}, {amqp_msg, _, Wanted}} ->
                 N rem 50 =:= 0 andalso amqp_channel:cast(Own, {'basic.ack', Delivery, true})
             after 60000 -> error({missing, N}) end
         end, lists:seq(1, 10000)),
         {'basic.cancel_ok', Tag} = amqp_channel:call(Own, {'basic.cancel', Tag, false}),
         ok = amqp_channel:close(Own),
         {'queue.declare_ok', Queue, 0, 0} = Call(declare(Queue))
      end},
     {"a return", fun() ->
         ok = amqp_channel:register_return_handler(Channel, self()),
         ok = amqp_channel:call(Channel, publish(<<>>, <<"nowhere">>, true), message(<<"back">>)),
         receive {{'basic.return', 312, <<"NO_ROUTE">>, <<>>, <<"nowhere">>}, {amqp_msg, _, <<"back">>}} -> ok
         after 30000 -> error(nothing) end
      end},
     {"a queue that goes cancels its consumer", fun() ->
         {ok, Own} = amqp_connection:open_channel(Connection),
         {'queue.declare_ok', Name, 0, 0} =
             amqp_channel:call(Own, {'queue.declare', 0, <<>>, false, false, true, true, false, []}),
         {'basic.consume_ok', Tag} = amqp_channel:subscribe(Own, consume(Name, true), self()),
         receive {'basic.consume_ok', Tag} -> ok end,
         {'queue.delete_ok', 0} = Call({'queue.delete', 0, Name, false, false, false}),
         receive {'basic.cancel', Tag, _} -> ok after 30000 -> error(nothing) end,
         ok = amqp_channel:close(Own)
      end},
     {"direct reply-to, by the client's own RPC", fun() ->
         Server = amqp_rpc_server:start(Connection, <<"suite.erlang.rpc">>, fun(Asked) -> <<"re: ", Asked/binary>> end),
         Client = amqp_rpc_client:start(Connection, <<"suite.erlang.rpc">>),
         <<"re: one">> = amqp_rpc_client:call(Client, <<"one">>),
         <<"re: two">> = amqp_rpc_client:call(Client, <<"two">>),
         amqp_rpc_client:stop(Client),
         amqp_rpc_server:stop(Server),
         {'queue.delete_ok', _} = Call({'queue.delete', 0, <<"suite.erlang.rpc">>, false, false, false})
      end},
     {"an error of the channel", fun() ->
         {ok, Own} = amqp_connection:open_channel(Connection),
         Monitor = monitor(process, Own),
         try amqp_channel:call(Own, get_(<<"absent">>)) catch exit:_ -> ok end,
         receive {'DOWN', Monitor, process, Own, {shutdown, {server_initiated_close, 404, Text}}} ->
             <<"NOT_FOUND - no queue 'absent' in vhost '/'">> = Text
         after 30000 -> error(nothing) end
      end},
     {"an error of the connection", fun() ->
         {ok, Other} = amqp_connection:start(Params),
         {ok, Own} = amqp_connection:open_channel(Other),
         Monitor = monitor(process, Other),
         try amqp_channel:call(Own, {'basic.qos', 10, 0, false}) catch exit:_ -> ok end,
         receive {'DOWN', Monitor, process, Other, Reason} ->
             {shutdown, {server_initiated_close, 540, <<"NOT_IMPLEMENTED - prefetch_size!=0 (10)">>}} = Reason
         after 30000 -> error(nothing) end
      end},
     {"a wrong password", fun() ->
         {error, {auth_failure, _}} = amqp_connection:start(setelement(3, Params, <<"wrong">>))
      end},
     {"no such virtual host", fun() ->
         {error, Reason} = amqp_connection:start(setelement(4, Params, <<"absent">>)),
         true = lists:member(Reason, [not_allowed, access_refused])
      end},
     {"delete", fun() -> {'queue.delete_ok', 0} = Call({'queue.delete', 0, Queue, false, false, false}) end}].
