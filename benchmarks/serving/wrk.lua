-- wrk URL -s wrk.lua -- BODIES [MOST [RATE]]
--
-- Sends the lines of the file BODIES in turn, and counts the answers by their
-- status. After MOST answers it asks no more, and prints the line "enough": wrk
-- itself waits for its time to be over, or for SIGINT. RATE requests are sent a
-- second on average, as far as there are connections that do not wait for an
-- answer. If it is 0, none of them pauses. The last line is JSON.

local ffi = require("ffi")
ffi.cdef[[
  typedef struct { long seconds, nanoseconds; } moment;
  int clock_gettime(int clock, moment *now);
]]
local now = ffi.new("moment")
local threads = {}

local function seconds()
  ffi.C.clock_gettime(1, now)
  return tonumber(now.seconds) + tonumber(now.nanoseconds) / 1e9
end

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  requests = {}
  for line in io.lines(arguments[1]) do
    table.insert(requests, wrk.format(nil, nil, nil, line))
  end
  most = tonumber(arguments[2]) or 0
  local rate = tonumber(arguments[3]) or 0
  if rate > 0 then
    local due = seconds()
    -- The milliseconds until a connection sends its next request.
    function delay()
      due = due + 1 / rate
      return math.max(0, math.floor(1000 * (due - seconds())))
    end
  end
  turn, answered, refused, failed = 0, 0, 0, 0
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function response(status)
  if status == 200 then
    answered = answered + 1
  elseif status == 429 then
    refused = refused + 1
  else
    failed = failed + 1
  end
  if answered + refused + failed == most then
    wrk.thread:stop()
    print("enough")
    io.flush()
  end
end

-- Milliseconds that at most so many answers took longer than.
local function bound(latency, count)
  for place = #latency, 1, -1 do
    local microseconds, number = latency(place)
    count = count - number
    if count < 0 then
      return microseconds / 1e3
    end
  end
  return 0
end

function done(summary, latency)
  local counts = {answered = 0, refused = 0, failed = 0}
  for _, thread in ipairs(threads) do
    for name in pairs(counts) do
      counts[name] = counts[name] + thread:get(name)
    end
  end
  local errors = summary.errors
  local lost = errors.connect + errors.read + errors.write + errors.timeout
  print(string.format(
    '{"answered": %d, "refused": %d, "failed": %d, "lost": %d, ' ..
    '"seconds": %f, "p50": %f, "p99": %f, "p99_answered": %f}',
    counts.answered, counts.refused, counts.failed, lost,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    bound(latency, counts.answered / 100)
  ))
end
