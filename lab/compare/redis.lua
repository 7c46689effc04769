-- KEYS: entity, request id. ARGV: tokens, seconds to remember the id.
-- Returns the tokens granted: all or 0; to a repeat what it was first.
local was = redis.call('SET', KEYS[2], ARGV[1], 'NX', 'GET', 'EX', ARGV[2])
if was then
  return tonumber(was)
end
local wanted = tonumber(ARGV[1])
if redis.call('DECRBY', KEYS[1], wanted) >= 0 then
  return wanted
end
redis.call('INCRBY', KEYS[1], wanted)
redis.call('SET', KEYS[2], '0', 'EX', ARGV[2])
return 0
