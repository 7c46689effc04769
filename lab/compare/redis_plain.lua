-- KEYS: entity. ARGV: tokens. Returns the tokens granted: all or 0.
local wanted = tonumber(ARGV[1])
if redis.call('DECRBY', KEYS[1], wanted) >= 0 then
  return wanted
end
redis.call('INCRBY', KEYS[1], wanted)
return 0
