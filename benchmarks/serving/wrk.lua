-- wrk URL -s wrk.lua -- BODIES [MOST]
--
-- Sends the lines of the file BODIES in turn, and counts the answers by their
-- status. After MOST answers it asks no more, and prints the line "enough": wrk
-- itself waits for its time to be over, or for SIGINT. The last line is JSON.

local threads = {}

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
  most = tonumber(arguments[2]) or math.huge
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
  if answered + refused + failed >= most then
    wrk.thread:stop()
    print("enough")
    io.flush()
  end
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
    '"seconds": %f, "p50": %f, "p99": %f}',
    counts.answered, counts.refused, counts.failed, lost,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
  ))
end
